"""A throw-away proof that asks and tells can live on Redis Cluster; not the store that will ship.

A host's rows, queue and politeness bucket share one hash tag ("{p17}"). Every step is one Redis function on one
tag, so it is atomic there and nowhere else. What crosses tags (evidence on a child that lives elsewhere) is sent as
a call of its own and *sets* what a parent says, so that it may safely be sent again.
An ask is `gather`, then `reserve`, on at most TOUCHED partitions; which ones, hints of earlier replies say.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import orjson
import xxhash

from crawlguide.core.columns import texts
from crawlguide.core.types import Batch, Crawl, Discovery, Grants, Hosts, Paths, Picked, Recorded, UrlRecord
from crawlguide.store.rows import HOST, PACE, ROW, STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from redis.asyncio import Redis

    from crawlguide.core.types import F64, I64, U64, Ask, Fetches, LeaseTerms, Links, Text

TOUCHED = 4  # partitions of an ask
AT_ONCE = 500  # items of one call, so that no call holds the server for long
FOCUS_PER_HOST = 10
Call = tuple[int, dict[str, Any]]

LUA = r"""#!lua name=crawlguide
local inf, nan = 1/0, 0/0  -- while a library loads, Lua's own libraries are not there yet
local function call(...) return redis.call(...) end
local QUEUED, LEASED, DONE, DROPPED, FREE = 0, 1, 2, 3, 4
local NAMES = {[0] = 'queued', 'leased', 'done'}

local function codec(format, names)  -- a numpy record as a Lua table, and back
  return function(bytes)
    local values, found = {struct.unpack(format, bytes)}, {}
    for i = 1, #names do found[names[i]] = values[i] end
    return found
  end, function(found)
    local values = {}
    for i = 1, #names do values[i] = found[names[i]] or 0 end  -- a new field starts at 0
    return struct.pack(format, unpack(values))
  end
end
local ROW = @SIZE@
local row_read, row_write = codec(@ROW@)
local host_read, host_write = codec(@HOST@)
local pace_read, pace_write = codec(@PACE@)

-- One call's view: what it read and changed, written back once at its end.
local function view(keys)
  return {k = keys[1] .. ':', p = keys[1]:match('^{.-}'), rows = {}, hosts = {}, paces = {}, counts = {}, open = {}}
end
local function count(s, name, n) s.counts[name] = (s.counts[name] or 0) + n end
local function many(key, ids)
  local found = {}
  for i = 1, #ids, 1000 do
    for _, value in ipairs(call('HMGET', key, unpack(ids, i, math.min(i + 999, #ids)))) do found[#found + 1] = value end
  end
  return found
end
local function row_of(s, id, bytes)
  local r = bytes and row_read(bytes) or false
  if r then r.at, r.url = bytes:match('^([^\n]*)\n(.*)$', ROW + 1) end
  s.rows[id] = r
end
local function load(s, ids)
  for i, bytes in ipairs(many(s.k .. 'rows', ids)) do row_of(s, ids[i], bytes) end
end
local function row(s, id)
  if s.rows[id] == nil then row_of(s, id, call('HGET', s.k .. 'rows', id)) end
  return s.rows[id]
end
local function host(s, name)
  if not s.hosts[name] then
    local bytes = call('HGET', s.k .. 'hosts', name)
    if not bytes then count(s, 'hosts', 1) end
    s.hosts[name] = bytes and host_read(bytes)
      or {pace = 0, domain = 0, pages = 0, failures = 0, judged = 0, relevance_sum = 0, withheld = -inf}
  end
  return s.hosts[name]
end
local function pace(s, name)
  if not s.paces[name] then
    local bytes = call('HGET', s.p .. 'pace', name)
    s.paces[name] = bytes and pace_read(bytes)
      or {last = -inf, next_fetch = -inf, blocked = -inf, delay = nan, backoff = 0, median_ms = nan,
          median_bytes = nan, fetches = 0, failures = 0, leases = 0, limit = 0, timed = 0, weighed = 0}
  end
  return s.paces[name]
end
local function claim(s, id, url, name, sequence, at)
  if row(s, id) then return s.rows[id], false end
  host(s, name)
  s.rows[id] = {sequence = sequence, discovered = at, fetched = nan, priority = 0, parent_sum = 0, parent_best = 0,
    given = nan, first_in = -1, first_out = -1, outs = 0, parents = 0, host = 0, arm = -1, stamp = -1,
    depth = 2147483647, max_depth = -1, relevance = nan, status = 0, tries = 0, state = FREE, reason = 0,
    at = name, url = url}
  return s.rows[id], true
end

-- Hosts are ordered by their best row (open) or by the instant at which they open (shut).
local function settle(s, name)
  local old, head = call('HGET', s.k .. 'heads', name), call('ZRANGE', s.k .. 'q:' .. name, 0, 0, 'WITHSCORES')
  local new = head[1] and head[1] .. name
  if new and call('ZSCORE', s.k .. 'shut', name) then return end
  if old and old ~= new then call('ZREM', s.k .. 'open', old) end
  if new then
    call('ZADD', s.k .. 'open', head[2], new)
    if old ~= new then call('HSET', s.k .. 'heads', name, new) end
  else
    call('HDEL', s.k .. 'heads', name)
    call('ZREM', s.k .. 'shut', name)
  end
end
local function shut(s, name, till)
  local old = call('HGET', s.k .. 'heads', name)
  if old then call('ZREM', s.k .. 'open', old); call('HDEL', s.k .. 'heads', name) end
  call('ZADD', s.k .. 'shut', till, name)
end
local function first(key)
  local found = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return found[2] and tonumber(found[2]) or inf
end
local function flush(s)  -- returns the hint: the best open row (as a score) and when something happens by itself
  for id, r in pairs(s.rows) do
    if r then call('HSET', s.k .. 'rows', id, row_write(r) .. r.at .. '\n' .. r.url) end
  end
  for name, h in pairs(s.hosts) do call('HSET', s.k .. 'hosts', name, host_write(h)) end
  for name, p in pairs(s.paces) do call('HSET', s.p .. 'pace', name, pace_write(p)) end
  for name, reopen in pairs(s.open) do
    if reopen == 'reopen' then call('ZREM', s.k .. 'shut', name) end
    settle(s, name)
  end
  for name, n in pairs(s.counts) do if n ~= 0 then call('HINCRBY', s.k .. 'counts', name, n) end end
  s.rows, s.hosts, s.paces, s.open, s.counts = {}, {}, {}, {}, {}
  local soon = math.min(first(s.k .. 'shut'), first(s.k .. 'later'), first(s.k .. 'leases'))
  return struct.pack('<dd', first(s.k .. 'open'), soon)
end

local function member(id, r) return string.format('%016x', r.sequence) .. id end
local function unlease(s, id, r)
  local lease = cmsgpack.unpack(call('HGET', s.k .. 'lease', id))
  call('HDEL', s.k .. 'lease', id)
  call('ZREM', s.k .. 'leases', id)
  call('SREM', s.k .. 'held:' .. lease[1], id)
  call('SREM', s.k .. 'asked:' .. lease[1] .. '\n' .. lease[2], id)
  pace(s, r.at).leases = pace(s, r.at).leases - 1
  s.open[r.at] = 'reopen'
end
local function move(s, id, r, state, extra)  -- the only way from state to state: leaves one place, enters another
  if r.state == QUEUED then call('ZREM', s.k .. 'q:' .. r.at, member(id, r)) end
  if r.state == QUEUED or r.state == DONE then call('ZREM', s.k .. 'later', id) end
  if r.state == LEASED then unlease(s, id, r) end
  if r.state == DROPPED then
    count(s, 'dropped:' .. call('HGET', s.k .. 'why', id), -1)
    call('HDEL', s.k .. 'why', id)
  elseif r.state ~= FREE then count(s, NAMES[r.state], -1) end
  r.state = state
  if state == DROPPED then
    count(s, 'dropped:' .. extra, 1)
    call('HSET', s.k .. 'why', id, extra)
  else count(s, NAMES[state], 1) end
  if state == QUEUED and extra then call('ZADD', s.k .. 'later', extra, id)
  elseif state == QUEUED then call('ZADD', s.k .. 'q:' .. r.at, -r.priority, member(id, r)) end
  s.open[r.at] = s.open[r.at] or 'settle'
end
local function wake(s, at)
  local ended = call('ZRANGEBYSCORE', s.k .. 'leases', '-inf', at, 'LIMIT', 0, 1000)
  local due = call('ZRANGEBYSCORE', s.k .. 'later', '-inf', at, 'LIMIT', 0, 1000)
  for _, ids in ipairs({ended, due}) do
    for _, id in ipairs(ids) do move(s, id, row(s, id), QUEUED) end
  end
  return #ended
end

local function openings(s, names)  -- when each host may be fetched, read off its two records
  local found, paces, hosts = {}, many(s.p .. 'pace', names), many(s.k .. 'hosts', names)
  for i = 1, #names do
    found[i] = -inf
    if paces[i] then
      local next_fetch, blocked = struct.unpack('<dd', paces[i], @NEXT@)
      found[i] = math.max(next_fetch, blocked)
    end
    if hosts[i] then found[i] = math.max(found[i], (struct.unpack('<d', hosts[i], @WITHHELD@))) end
  end
  return found
end
local function best(s, a)  -- merges the queues of open hosts, best first: O(rows given), whatever waits
  local found, waiting = {}, {}
  local heads, opens, next_head, offset = {}, {}, 1, 0
  local function after(x, y) return x.score > y.score or (x.score == y.score and x.sequence > y.sequence) end
  local function wait(item)  -- the best stands last
    item.score, item.sequence = tonumber(item.list[item.i + 1]), tonumber(item.list[item.i]:sub(1, 16), 16)
    local low, high = 1, #waiting + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if after(waiting[middle], item) then low = middle + 1 else high = middle end
    end
    table.insert(waiting, low, item)
  end
  local function head()  -- the best host not yet looked at; shut ones are set aside on the way
    while true do
      if not heads[next_head] then
        heads, next_head = call('ZRANGE', s.k .. 'open', offset, offset + 31, 'WITHSCORES'), 1
        if not heads[1] then return nil end
        offset = offset + #heads / 2
        local names = {}
        for i = 1, #heads, 2 do names[#names + 1] = heads[i]:sub(33) end
        opens = openings(s, names)
      end
      local entry, score, till = heads[next_head], heads[next_head + 1], opens[(next_head + 1) / 2]
      next_head = next_head + 2
      if till <= a.till then
        local item = {name = entry:sub(33), list = {entry:sub(1, 32), score}, i = 1, given = 0}
        item.score, item.sequence = tonumber(score), tonumber(entry:sub(1, 16), 16)
        return item
      end
      shut(s, entry:sub(33), till)
      offset = offset - 1
    end
  end
  local fresh = head()
  while #found < a.limit do
    local top = waiting[#waiting]
    if fresh and (not top or after(top, fresh)) then top, fresh = fresh, head() else waiting[#waiting] = nil end
    if not top then break end
    found[#found + 1] = top.list[top.i]:sub(17)
    top.i, top.given = top.i + 2, top.given + 1
    if not top.list[top.i] then  -- mostly a host gives few of the best, so ask for few
      top.i = 1
      top.list = call('ZRANGE', s.k .. 'q:' .. top.name, top.given, top.given + 3, 'WITHSCORES')
    end
    if top.given < a.per_host and top.list[1] then wait(top) end
  end
  return found
end
local function shown(s, ids, hint, counted)  -- rows as numpy will read them, joined with their hosts
  local names, number, rows, urls, where, known = {}, {}, {}, {}, {}, {}
  for i, bytes in ipairs(many(s.k .. 'rows', ids)) do
    if bytes then
      local cut = bytes:find('\n', ROW + 1, true)
      local name = bytes:sub(ROW + 1, cut - 1)
      if not number[name] then names[#names + 1] = name; number[name] = struct.pack('<i8', #names - 1) end
      known[#known + 1], rows[#rows + 1], urls[#urls + 1] = ids[i], bytes:sub(1, ROW), bytes:sub(cut + 1)
      where[#where + 1] = number[name]
    end
  end
  local facts, paces = many(s.k .. 'hosts', names), many(s.p .. 'pace', names)
  for i, name in ipairs(names) do
    facts[i], paces[i] = facts[i] or host_write(host(s, name)), paces[i] or pace_write(pace(s, name))
  end
  return {hint, table.concat(known), table.concat(rows), table.concat(urls, '\n'), table.concat(where),
          table.concat(names, '\n'), table.concat(facts), table.concat(paces), counted or #known}
end

local function gather(s, a)
  wake(s, a.at)
  for _, name in ipairs(call('ZRANGEBYSCORE', s.k .. 'shut', '-inf', a.till, 'LIMIT', 0, 1000)) do
    s.open[name] = 'reopen'
  end
  flush(s)
  local ids, seen = best(s, a), {}
  local counted, allowed = #ids, openings(s, a.focus)
  for _, id in ipairs(ids) do seen[id] = true end
  local function extra(id) if not seen[id] then seen[id] = true; ids[#ids + 1] = id end end
  for i, name in ipairs(a.focus) do
    local rows = allowed[i] <= a.till and call('ZRANGE', s.k .. 'q:' .. name, 0, a.focus_rows - 1) or {}
    for _, m in ipairs(rows) do extra(m:sub(17)) end
  end
  for _, id in ipairs(call('SMEMBERS', s.k .. 'asked:' .. a.crawler .. '\n' .. a.request)) do extra(id) end
  return shown(s, ids, flush(s), counted)
end

local function reserve(s, a)
  local outcomes, starts = {}, {}
  load(s, a.ids)
  for i, id in ipairs(a.ids) do
    local r, outcome, slot = row(s, id), 2, a.at
    if r and r.state == QUEUED then
      local p = pace(s, r.at)
      local own = p.delay ~= p.delay and a.delay or p.delay
      local full = (a.strict and p.leases > 0) or (p.limit > 0 and p.leases >= p.limit)
      slot = math.max(a.at, p.next_fetch, p.blocked, p.last + own)
      if full then slot = math.max(slot, a.at + own) end
      outcome = (full or slot > a.at + a.horizon) and 1 or 0
      if outcome == 0 then
        p.last, p.next_fetch, p.leases = slot, slot + own, p.leases + 1
        move(s, id, r, LEASED)
        call('HSET', s.k .. 'lease', id, cmsgpack.pack({a.crawler, a.request, a.ends, slot, a.strict}))
        call('ZADD', s.k .. 'leases', a.ends, id)
        call('SADD', s.k .. 'held:' .. a.crawler, id)
        if a.request ~= '' then call('SADD', s.k .. 'asked:' .. a.crawler .. '\n' .. a.request, id) end
        if a.strict then shut(s, r.at, a.ends) end
      end
    elseif r and r.state == LEASED and a.request ~= '' then  -- this request was here before: it keeps what it got
      local lease = cmsgpack.unpack(call('HGET', s.k .. 'lease', id))
      if lease[1] == a.crawler and lease[2] == a.request then outcome, slot = 0, lease[4] end
    end
    outcomes[i], starts[i] = string.char(outcome), struct.pack('<d', slot)
  end
  return {flush(s), table.concat(outcomes), table.concat(starts)}
end

local function known(relevance) return relevance ~= relevance and 0.5 or relevance end
local function judge(s, id, r, relevance, told)  -- `told`: what the children, wherever they live, have to hear
  local before, h = r.relevance, host(s, r.at)
  r.relevance = relevance
  count(s, 'relevant', (relevance >= 0.5 and 1 or 0) - (before >= 0.5 and 1 or 0))
  if relevance == relevance then
    h.relevance_sum = h.relevance_sum + relevance - (before == before and before or 0)
    h.judged = h.judged + (before == before and 0 or 1)
  end
  local ids, names, out = {}, {}, call('HGETALL', s.k .. 'out:' .. id)
  for i = 1, #out, 2 do ids[#ids + 1], names[#names + 1] = out[i], cmsgpack.unpack(out[i + 1])[1] end
  if ids[1] then told[#told + 1] = {id, tostring(known(relevance)), table.concat(ids), table.concat(names, '\n')} end
end
local function remembered(s, key, name, counted, value)
  local ring = call('HGET', s.p .. key, name)
  ring = ring and cmsgpack.unpack(ring) or {}
  ring[counted % 15 + 1] = value
  call('HSET', s.p .. key, name, cmsgpack.pack(ring))
  table.sort(ring)
  return ring[math.floor((#ring - 1) / 2) + 1]
end
local function slow_down(p, f, at)
  local slow, wait = f.status == 429 or f.status == 503, 0
  if slow then p.backoff = math.min(math.max(2 * p.backoff, 2), 3600)
  elseif f.status >= 200 and f.status < 400 then p.backoff = p.backoff >= 2 and p.backoff / 2 or 0 end
  if f.retry_after >= 0 then wait = f.retry_after elseif slow then wait = p.backoff end
  if wait > 0 then p.blocked = math.max(p.blocked, at + math.min(wait, 86400)) end
end
local function finish(s, f, at, told)  -- the page that the content belongs to
  local r = claim(s, f.target, f.target_url, f.target_host, f.sequence, at)
  if r.depth == 2147483647 then r.depth = 0 end
  r.status, r.fetched = math.max(f.status, 0), at
  if r.state ~= DONE then move(s, f.target, r, DONE) end
  judge(s, f.target, r, f.failed and 0 or f.relevance, told)
end
local PASSING = {timeout = true, dns = true, connect = true}
local function fetched(s, f, a, told)
  local r = row(s, f.id)
  if f.status < 0 and f.error == '' then
    if not r or r.fetched ~= r.fetched then return 'never_fetched' end
    return judge(s, f.id, r, math.min(math.max(f.reward, 0), 1), told) or ''
  elseif f.error == 'released' then
    if not r or r.state ~= LEASED then return 'not_leased' end
    return move(s, f.id, r, QUEUED) or ''
  elseif f.time ~= '' then
    if tonumber(call('ZSCORE', s.k .. 'told', f.id .. f.time) or '-inf') > a.at then return 'duplicate' end
    call('ZADD', s.k .. 'told', a.at + 86400, f.id .. f.time)
  end
  r = claim(s, f.id, f.url, f.host, f.sequence, a.at)
  if r.depth == 2147483647 then r.depth = 0 end
  local p, h, kind = pace(s, r.at), host(s, r.at), f.failed and 'failures' or 'pages'
  local lease = r.state == LEASED and cmsgpack.unpack(call('HGET', s.k .. 'lease', f.id))
  if lease and lease[5] then p.last = math.max(p.last, a.at - math.max(f.ms, 0) / 1000) end
  p.fetches, p.failures, h[kind] = p.fetches + 1, p.failures + (f.failed and 1 or 0), h[kind] + 1
  if f.failed and (f.error ~= '' or f.status == 429 or f.status >= 500) then h.errors = (h.errors or 0) + 1 end
  if f.ms >= 0 then p.median_ms, p.timed = remembered(s, 'ms', r.at, p.timed, f.ms), p.timed + 1 end
  if f.bytes >= 0 and not f.failed then
    p.median_bytes, p.weighed = remembered(s, 'bytes', r.at, p.weighed, f.bytes), p.weighed + 1
  end
  slow_down(p, f, a.at)
  count(s, 'fetches', 1)
  count(s, 'failed', f.failed and 1 or 0)
  r.status, r.fetched = math.max(f.status, 0), a.at
  local passing = PASSING[f.error] or (f.error == '' and (f.status == 429 or f.status >= 500))
  if f.failed and passing and r.tries < a.max_retries then
    r.tries = r.tries + 1
    return move(s, f.id, r, QUEUED, a.at + math.min(10 * 2 ^ (r.tries - 1), 3600)) or ''
  end
  r.tries = 0
  if r.state ~= DONE then move(s, f.id, r, DONE) end
  if not f.here then return 'elsewhere' end  -- the caller sends `finish` to the target's partition
  return finish(s, f, a.at, told) or ''
end
local function record(s, a)
  local told, skips = {}, {}
  call('ZREMRANGEBYSCORE', s.k .. 'told', '-inf', a.at)
  for i, f in ipairs(a.items) do skips[i] = fetched(s, f, a, told) end
  return {flush(s), told, skips}
end

local function hear(s, id, r, parent, relevance, anchor, position)  -- a parent says it once, and may correct itself
  local key = s.k .. 'in:' .. id
  local old = call('HGET', key, parent)
  old = old and cmsgpack.unpack(old)
  r.parents = r.parents + (old and 0 or 1)
  r.parent_sum = r.parent_sum + relevance - (old and old[1] or 0)
  r.parent_best = math.max(r.parent_best, relevance)
  call('HSET', key, parent, cmsgpack.pack({relevance, anchor or old[2], position or old[3]}))
end
local function evidence(s, a)
  for _, e in ipairs(a.items) do
    local r = row(s, e[1])
    if r and call('HEXISTS', s.k .. 'in:' .. e[1], e[2]) == 1 then hear(s, e[1], r, e[2], e[3]) end
  end
  return {flush(s)}
end
local function outlinks(s, a)  -- the parent's side of its links; returns how deep it lies and may lie
  local depths = {}
  for i, page in ipairs(a.items) do
    local id, r = page[1], row(s, page[1])
    call('DEL', s.k .. 'out:' .. id)
    for _, link in ipairs(page[2]) do
      call('HSETNX', s.k .. 'out:' .. id, link[1], cmsgpack.pack({link[2], link[3], link[4]}))
    end
    depths[i] = {r and r.depth or -1, r and r.max_depth or -1}
  end
  return {flush(s), depths}
end
local function discover(s, a)
  local new, ids = 0, {}
  for i, l in ipairs(a.items) do ids[i] = l[1] end
  load(s, ids)
  for _, l in ipairs(a.items) do
    local id, parent = l[1], l[10]
    local r, fresh = claim(s, id, l[2], l[3], l[4], a.at)
    r.depth = math.min(r.depth, l[6])
    if parent ~= '' then hear(s, id, r, parent, l[11], l[12], l[13])
    elseif r.parents == 0 then r.parents, r.parent_sum, r.parent_best = 1, r.parent_sum + 1, 1 end
    if l[5] == l[5] then r.given = l[5] end
    if fresh then r.max_depth, new = l[7], new + 1 end
    if l[9] then call('HSETNX', s.k .. 'metadata', id, l[9]) end
  end
  for _, l in ipairs(a.items) do
    local id, r = l[1], s.rows[l[1]]
    local refused = l[8] ~= '' or (l[7] >= 0 and l[6] > l[7])
    if r.state == FREE and refused then move(s, id, r, DROPPED, l[8] ~= '' and l[8] or 'scope')
    elseif r.state == FREE then
      r.priority = r.given == r.given and r.given or r.parent_sum / math.max(r.parents, 1)
      move(s, id, r, QUEUED)
    elseif r.state == DROPPED and not refused and call('HGET', s.k .. 'why', id) == 'scope' then
      move(s, id, r, QUEUED)
    end
  end
  count(s, 'discovered', new)
  call('SADD', s.p .. 'crawls', s.k)
  return {flush(s), new}
end
local function rank(s, a)
  load(s, a.ids)
  for i, id in ipairs(a.ids) do
    local r = row(s, id)
    if r then
      r.priority, s.open[r.at] = a.priority[i], s.open[r.at] or 'settle'
      if r.state == QUEUED then call('ZADD', s.k .. 'q:' .. r.at, 'XX', -r.priority, member(id, r)) end
    end
  end
  return {flush(s)}
end
local function alter(s, a)  -- drop, revive, schedule, release: named moves of some rows
  local n, ids = 0, a.crawler and call('SMEMBERS', s.k .. 'held:' .. a.crawler) or a.ids
  for i, id in ipairs(ids) do
    local r = row(s, id)
    if r and r.state == a.from then
      n = n + 1
      if a.due then call('ZADD', s.k .. 'later', a.due[i], id) else move(s, id, r, a.to, a.reason) end
    end
  end
  return {flush(s), n}
end
local function expire(s, a)
  local n = wake(s, a.at)
  return {flush(s), n}
end
local function find(s, a)
  local found = {}
  for i, bytes in ipairs(many(s.k .. 'rows', a.ids)) do
    local id = a.ids[i]
    if bytes then
      found[#found + 1] = {id, bytes:sub(1, ROW), bytes:match('\n(.*)$', ROW + 1), call('HGET', s.k .. 'why', id),
        call('HGET', s.k .. 'lease', id), call('HGET', s.k .. 'metadata', id), call('HGETALL', s.k .. a.paths .. id)}
    end
  end
  return {flush(s), found}
end
local function withhold(s, a)
  for _, name in ipairs(a.hosts) do
    host(s, name).withheld = a.till
    s.open[name] = 'reopen'
  end
  return {flush(s)}
end
local function control(s, a)  -- a queue's pace is everybody's: every crawl of this partition looks at it anew
  local p = pace(s, a.queue)
  if a.delay then p.delay, p.next_fetch = a.delay, p.last + a.delay end
  if a.block then p.blocked = a.block end
  if a.limit then p.limit = a.limit end
  local hint = flush(s)
  for _, k in ipairs(call('SMEMBERS', s.p .. 'crawls')) do
    call('ZREM', k .. 'shut', a.queue)
    settle({k = k}, a.queue)
  end
  return {hint}
end
local function stats(s) return {flush(s), call('HGETALL', s.k .. 'counts')} end
local function finishing(s, a)
  local told = {}
  for _, f in ipairs(a.items) do finish(s, f, a.at, told) end
  return {flush(s), told}
end
local function look(s, a) return shown(s, a.ids, flush(s)) end

local function register(name, f)
  redis.register_function('cg_' .. name, function(keys, args) return f(view(keys), cmsgpack.unpack(args[1])) end)
end
register('gather', gather)
register('reserve', reserve)
register('record', record)
register('evidence', evidence)
register('outlinks', outlinks)
register('discover', discover)
register('rank', rank)
register('alter', alter)
register('expire', expire)
register('find', find)
register('withhold', withhold)
register('control', control)
register('stats', stats)
register('look', look)
register('finish', finishing)
"""

CODES = {"i8": "i8", "i4": "i4", "i2": "i2", "u1": "B", "f8": "d", "f4": "f"}


def _codec(record: np.dtype[np.void]) -> str:
    """The record as a format and names for Lua, so that the two sides cannot drift apart."""
    fields: Mapping[str, Any] = record.fields or {}
    codes = [CODES[field[0].str[1:]] for field in fields.values()]
    padding = record.itemsize - max(field[1] + field[0].itemsize for field in fields.values())
    return f"'<{''.join(codes)}{'x' * padding}', {{{', '.join(map(repr, fields))}}}"


def _offset(record: np.dtype[np.void], name: str) -> int:
    fields: Mapping[str, Any] = record.fields or {}
    return int(fields[name][1])


class RedisPrototype:
    """The part of `Store` that asks and tells need."""

    def __init__(self, redis: Redis, partitions: int = 256, spare: float = np.inf) -> None:
        """`spare`: how many more rows than its share each partition shows; the order is exact only with inf."""
        self._redis, self._partitions, self._spare = redis, partitions, spare
        self._hints: dict[Crawl, dict[int, tuple[float, float]]] = {}
        self.calls: list[tuple[str, int]] = []  # what the tests count

    async def load(self) -> None:
        source = LUA.replace("@SIZE@", str(ROW.itemsize))
        for name, offset in (("NEXT", _offset(PACE, "next_fetch")), ("WITHHELD", _offset(HOST, "withheld"))):
            source = source.replace(f"@{name}@", str(offset + 1))
        for name, record in (("ROW", ROW), ("HOST", HOST), ("PACE", PACE)):
            source = source.replace(f"@{name}@", _codec(record))
        await self._redis.function_load(source, replace=True)

    def partition(self, host: str) -> int:
        return int(xxhash.xxh3_64_intdigest(host.encode())) % self._partitions

    async def _call(self, crawl: Crawl, function: str, calls: Iterable[Call]) -> list[list[Any]]:
        """One function on some partitions, side by side; their hints are kept."""
        calls = list(calls)
        name = orjson.dumps(list(crawl)).decode()
        pipe = self._redis.pipeline(transaction=False)
        for tag, payload in calls:
            pipe.fcall(f"cg_{function}", 1, f"{{p{tag}}}:{name}", msgspec.msgpack.encode(payload))
        replies: list[list[Any]] = await pipe.execute()
        self.calls += [(function, tag) for tag, _ in calls]
        for (tag, _), reply in zip(calls, replies, strict=True):
            best, soon = np.frombuffer(reply[0]).tolist()
            self._hints.setdefault(crawl, {})[tag] = (best, soon)
        return replies

    async def _items(self, crawl: Crawl, function: str, items: dict[int, list[Any]], at: float, **more: Any) -> Any:
        """Items to their partitions, in pieces; the replies with the items of each."""
        pieces = [(tag, some[n : n + AT_ONCE]) for tag, some in items.items() for n in range(0, len(some), AT_ONCE)]
        calls = [(tag, {"items": piece, "at": at, **more}) for tag, piece in pieces]
        return zip(await self._call(crawl, function, calls), [piece for _, piece in pieces], strict=True)

    async def _by_id(self, crawl: Crawl, function: str, ids: U64, hosts: Text | None, **columns: Any) -> Any:
        """THE WALL: an id does not say where its row lives. Without `hosts` every partition has to be asked."""
        raw = _raw(ids)
        if hosts is None:
            rows = {tag: list(range(len(raw))) for tag in range(self._partitions)}
        else:
            rows = self._split(range(len(raw)), hosts)
        some = [
            (tag, {"ids": [raw[n] for n in mine], **{k: _some(v, mine) for k, v in columns.items()}})
            for tag, mine in rows.items()
        ]
        return await self._call(crawl, function, some)

    def _split(self, rows: Iterable[int], hosts: Sequence[str] | Text) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for row in rows:
            found[self.partition(hosts[row])].append(row)
        return found

    # crawls, as far as the contract needs them

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:  # noqa: ARG002
        return bool(await self._redis.hset(f"crawls:{crawl.tenant}", crawl.name, definition))

    async def crawl_get(self, crawl: Crawl) -> bytes | None:
        found = await self._redis.hget(f"crawls:{crawl.tenant}", crawl.name)
        return found.encode() if isinstance(found, str) else found

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        names = await self._redis.hkeys(f"crawls:{tenant}")
        return sorted(Crawl(tenant, _text(name)) for name in names)

    # an ask

    async def gather(self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int) -> Batch:
        till = ask.at + horizon_s
        tags = await self._chosen(crawl, ask, till)
        share = int(min(limit, np.ceil(limit / max(len(tags), 1) * self._spare)))
        query: dict[str, Any] = {
            "at": ask.at,
            "till": till,
            "limit": share,
            "per_host": per_host,
            "focus_rows": FOCUS_PER_HOST,
        }
        query |= {"crawler": ask.crawler_id, "request": ask.request_id or "\n"}
        calls = [(tag, query | {"focus": [h for h in ask.focus if self.partition(h) == tag]}) for tag in tags]
        batch, ranked = _batch(await self._call(crawl, "gather", calls))
        order = np.lexsort((batch.sequence, -batch.priority))
        best = order[ranked[order]]
        extra = ~ranked | np.isin(batch.hosts.name[batch.host].astype(str), list(ask.focus))
        extra[best[:limit]] = False
        return batch.take(np.concatenate([best[:limit], np.flatnonzero(extra)]))

    async def _chosen(self, crawl: Crawl, ask: Ask, till: float) -> list[int]:
        """At most TOUCHED partitions: where this request already was, the focus, then the best open rows.

        A retry may come by way of another guide with other hints; only the note leads it back to its own grants.
        """
        if self._partitions <= TOUCHED:
            return list(range(self._partitions))
        if len(self._hints.get(crawl, {})) < self._partitions:  # once; a shipped store would share hints by a key
            await self._call(crawl, "stats", [(tag, {}) for tag in range(self._partitions)])
        hints = self._hints[crawl]
        ready = [tag for tag, (best, soon) in hints.items() if best < np.inf or soon <= till]
        focus = {self.partition(host) for host in ask.focus}
        ready.sort(key=lambda tag: (tag not in focus, hints[tag][0]))
        before = orjson.loads(await self._redis.get(_note(crawl, ask.crawler_id, ask.request_id)) or b"[]")
        return list(dict.fromkeys([*before, *ready]))[:TOUCHED]

    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        rows = self._split(range(len(batch)), batch.hosts.name[batch.host])
        raw = _raw(batch.id)
        query: dict[str, Any] = {"at": terms.at, "ends": terms.at + terms.lease_s, "delay": terms.delay_s}
        query |= {"strict": terms.strict} | {
            "horizon": terms.horizon_s,
            "crawler": terms.crawler_id,
            "request": terms.request_id or "",
        }
        calls = [(tag, query | {"ids": [raw[n] for n in mine]}) for tag, mine in rows.items()]
        if terms.request_id:
            note = _note(crawl, terms.crawler_id, terms.request_id)
            await self._redis.set(note, orjson.dumps(list(rows)), ex=int(terms.lease_s) + 1)
        outcome, start = np.empty(len(batch), np.uint8), np.empty(len(batch))
        for mine, reply in zip(rows.values(), await self._call(crawl, "reserve", calls), strict=True):
            outcome[mine], start[mine] = np.frombuffer(reply[1], np.uint8), np.frombuffer(reply[2])
        return Grants(outcome, start)

    # a tell

    async def record(self, crawl: Crawl, fetches: Fetches, at: float, max_retries: int) -> Recorded:
        """Fetched pages, then targets of redirects elsewhere, then evidence for children elsewhere: three rounds."""
        items = await self._fetched(crawl, fetches)
        skipped: list[str | None] = [None] * len(fetches)
        told, elsewhere = [], defaultdict(list)
        home = {tag: [items[n] for n in rows] for tag, rows in self._split(range(len(items)), fetches.host).items()}
        for reply, piece in await self._items(crawl, "record", home, at, max_retries=max_retries):
            told += reply[1]
            for item, skip in zip(piece, reply[2], strict=True):
                if skip == b"elsewhere":
                    elsewhere[self.partition(item["target_host"])].append(item)
                elif skip:
                    skipped[item["number"]] = skip.decode()
        for reply, _ in await self._items(crawl, "finish", elsewhere, at):
            told += reply[1]
        return Recorded(skipped, await self._spread(crawl, told, at))

    async def _fetched(self, crawl: Crawl, fetches: Fetches) -> list[dict[str, Any]]:
        first = await self._numbers(crawl, len(fetches))
        raw, targets = _raw(fetches.id), _raw(fetches.target_id)
        names = {"url": "url", "host": "host", "target_url": "target_url", "target_host": "target_host"}
        names |= {"status": "status", "error": "error", "ms": "elapsed_ms", "bytes": "bytes", "time": "fetch_time"}
        names |= {"relevance": "relevance", "reward": "reward", "retry_after": "retry_after_s"}
        columns = {short: getattr(fetches, name).tolist() for short, name in names.items()}
        items = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        for n, item in enumerate(items):
            item |= {"number": n, "id": raw[n], "target": targets[n], "sequence": first + n}
            item["failed"] = bool(item["error"]) or item["status"] >= 400
            item["here"] = self.partition(item["host"]) == self.partition(item["target_host"])
        return items

    async def _spread(self, crawl: Crawl, told: list[Any], at: float) -> U64:
        """What a page's relevance says about its children goes to where they live."""
        heard: dict[int, list[Any]] = defaultdict(list)
        changed = [_ids(children) for _, _, children, _ in told]
        for parent, relevance, children, hosts in told:
            for n, host in enumerate(hosts.decode().split("\n")):
                child = children[16 * n : 16 * n + 16].decode()
                heard[self.partition(host)].append([child, parent.decode(), float(relevance)])
        await self._items(crawl, "evidence", heard, at)
        return np.unique(np.concatenate(changed)) if changed else np.zeros(0, np.uint64)

    async def _numbers(self, crawl: Crawl, count: int) -> int:
        """Numbers of discovery, from one counter a crawl: the only key that every tell shares."""
        key = f"sequence:{orjson.dumps(list(crawl)).decode()}"
        return int(await self._redis.incrby(key, count)) - count

    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        """First where the pages live (their links, how deep they lie), then where the links lead."""
        first = await self._numbers(crawl, len(links))
        raw = _raw(links.id)
        pages = await self._outlinks(crawl, links, parents, at, raw) if parents is not None else {}
        columns = [
            c.tolist()
            for c in (
                links.parent, links.url, links.host, links.given, links.max_depth, links.reason, links.metadata,
                links.anchor, links.position,
            )
        ]  # fmt: skip
        found: dict[int, list[Any]] = defaultdict(list)
        for n, (page, url, host, given, bound, reason, metadata, anchor, position) in enumerate(
            zip(*columns, strict=True)
        ):
            parent, relevance, depth, inherited = pages.get(page, ("", 1.0, -1, -1))
            bounds = [b for b in (bound, inherited) if b >= 0]
            item = [raw[n], url, host, first + n, given, depth + 1, min(bounds, default=-1), reason or ""]
            item += [metadata.decode() if metadata else False, parent, relevance, anchor, position]
            found[self.partition(host)].append(item)
        new = sum([reply[1] for reply, _ in await self._items(crawl, "discover", found, at)])
        return Discovery(new, links.id)

    async def _outlinks(
        self, crawl: Crawl, links: Links, parents: Fetches, at: float, raw: list[str]
    ) -> dict[int, tuple[str, float, int, int]]:
        """Per page its id, relevance, depth and bound. Neither links nor fetches carry the last two."""
        ids, rows = _raw(parents.target_id), links.parent.tolist()
        out: dict[int, list[Any]] = {page: [] for page in sorted(set(rows)) if page >= 0}
        for n, page in enumerate(rows):
            if page >= 0:
                out[page].append([raw[n], links.host[n], links.anchor[n], int(links.position[n])])
        tags = self._split(out, parents.target_host)
        items = {tag: [[ids[page], out[page], page] for page in mine] for tag, mine in tags.items()}
        relevance = np.where(np.isnan(parents.relevance), 0.5, parents.relevance).tolist()
        return {
            page: (parent, relevance[page], depth, bound)
            for reply, piece in await self._items(crawl, "outlinks", items, at)
            for (parent, _, page), (depth, bound) in zip(piece, reply[1], strict=True)
        }

    async def rank(self, crawl: Crawl, ids: U64, priority: F64, hosts: Text | None = None) -> None:
        await self._by_id(crawl, "rank", ids, hosts, priority=priority.tolist())

    async def look(self, crawl: Crawl, ids: U64, hosts: Text | None = None) -> Batch:
        batch, _ = _batch(await self._by_id(crawl, "look", ids, hosts))
        place = {int(id_): n for n, id_ in enumerate(batch.id)}
        return batch.take(np.array([place[int(i)] for i in ids if int(i) in place], np.intp))

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]:
        found = await self._found(crawl, ids)
        return [_record(found[raw]) if raw in found else None for raw in _raw(ids)]

    async def _found(self, crawl: Crawl, ids: U64, paths: str = "in:") -> dict[str, Any]:
        replies = await self._by_id(crawl, "find", ids, None, paths=paths)
        return {found[0].decode(): found for reply in replies for found in reply[1]}

    async def metadata(self, crawl: Crawl, ids: U64) -> list[bytes | None]:
        found = await self._found(crawl, ids)
        return [found[raw][5] if raw in found else None for raw in _raw(ids)]

    async def parents(self, crawl: Crawl, ids: U64) -> Paths:
        found = await self._found(crawl, ids)
        return _paths([(p, raw.encode(), link[1:]) for raw in _raw(ids) for p, link in _links(found.get(raw))])

    async def children(self, crawl: Crawl, ids: U64) -> Paths:
        found = await self._found(crawl, ids, "out:")
        return _paths([(raw.encode(), c, link[1:]) for raw in _raw(ids) for c, link in _links(found.get(raw))])

    async def schedule(self, crawl: Crawl, ids: U64, due: F64) -> None:
        await self._by_id(crawl, "alter", ids, None, due=due.tolist(), **{"from": 2})

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        await self._by_id(crawl, "alter", ids, None, reason=reason, to=3, **{"from": 0})

    async def revive(self, crawl: Crawl, ids: U64) -> None:
        await self._by_id(crawl, "alter", ids, None, to=0, **{"from": 3})

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        query = {"crawler": crawler_id, "from": 1, "to": 0}
        return sum([reply[1] for reply in await self._everywhere(crawl, "alter", query)])

    async def expire(self, crawl: Crawl, at: float) -> int:
        return sum([reply[1] for reply in await self._everywhere(crawl, "expire", {"at": at})])

    async def _everywhere(self, crawl: Crawl, function: str, query: dict[str, Any]) -> list[list[Any]]:
        return await self._call(crawl, function, [(tag, query) for tag in range(self._partitions)])

    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: float) -> None:
        tags = self._split(range(len(hosts)), hosts)
        calls = [(tag, {"hosts": [hosts[n] for n in mine], "till": until}) for tag, mine in tags.items()]
        await self._call(crawl, "withhold", calls)

    async def control(
        self,
        queue: str,
        *,
        delay_s: float | None = None,
        block_until: float | None = None,
        limit: int | None = None,
    ) -> None:
        given = {"queue": queue, "delay": delay_s, "block": block_until, "limit": limit}
        query = {name: value for name, value in given.items() if value is not None}
        crawl = next(iter(self._hints))  # no crawl is meant, but every function speaks for one
        await self._call(crawl, "control", [(self.partition(queue), query)])
        self._hints.clear()

    async def wait(self, crawl: Crawl, at: float) -> float | None:
        await self._everywhere(crawl, "stats", {})
        best, soon = np.array(list(self._hints[crawl].values())).T
        if best.min() < np.inf:
            return 0.0
        return max(float(soon.min()) - at, 0.0) if soon.min() < np.inf else None

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]:
        total = dict.fromkeys((*STATES[:3], "hosts", "fetches", "failed", "relevant", "discovered"), 0)
        for reply in await self._everywhere(crawl, "stats", {}):
            for name, number in zip(reply[1][::2], reply[1][1::2], strict=True):
                total[name.decode()] = total.get(name.decode(), 0) + int(number)
        dropped = {name[8:]: total.pop(name) for name in list(total) if name.startswith("dropped:")}
        return {**total, "dropped": {reason: number for reason, number in dropped.items() if number}}

    async def close(self) -> None:
        await self._redis.aclose()


def _note(crawl: Crawl, crawler_id: str, request_id: str | None) -> str:
    return f"asked:{orjson.dumps([*crawl, crawler_id, request_id]).decode()}"


def _text(reply: bytes | str) -> str:
    return reply if isinstance(reply, str) else reply.decode()


def _raw(ids: U64) -> list[str]:
    """Ids as text: Lua's numbers end at 2**53, and its msgpack knows no binary strings."""
    whole = ids.tobytes().hex()
    return [whole[n : n + 16] for n in range(0, len(whole), 16)]


def _ids(*raw: bytes) -> U64:
    return np.frombuffer(bytes.fromhex(b"".join(raw).decode()), np.uint64)


def _some(column: Any, rows: list[int]) -> Any:
    return [column[n] for n in rows] if isinstance(column, list) else column


def _names(joined: bytes) -> list[str]:
    return joined.decode().split("\n") if joined else []


def _batch(replies: list[list[Any]]) -> tuple[Batch, np.ndarray[Any, np.dtype[np.bool_]]]:
    """The rows of all replies, and which of them stand there for their rank."""
    facts, mine, pace = (
        np.frombuffer(b"".join(r[n] for r in replies), kind) for n, kind in ((2, ROW), (6, HOST), (7, PACE))
    )
    names = [name for reply in replies for name in _names(reply[5])]
    offsets = np.cumsum([0, *(len(_names(reply[5])) for reply in replies)])
    hosts = [np.frombuffer(r[4], np.int64) + offset for r, offset in zip(replies, offsets, strict=False)]
    host: I64 = np.concatenate([*hosts, np.zeros(0, np.int64)])
    opens = np.maximum(pace["next_fetch"], pace["blocked"])
    table = Hosts(
        texts(names), Picked(mine), Picked(pace), opens, mine["pages"] + pace["leases"]
    )  # domain: only what one host knows
    ranked = [np.arange(len(h)) < reply[8] for h, reply in zip(hosts, replies, strict=True)]
    batch = Batch(
        url=texts(url for reply in replies for url in _names(reply[3])),
        id=_ids(*(reply[1] for reply in replies)),
        host=host,
        facts=Picked(facts),
        estimated_ms=table.median_ms[host],
        estimated_bytes=table.median_bytes[host],
        value=facts["priority"],
        score=facts["priority"],
        hosts=table,
    )
    return batch, np.concatenate([*ranked, np.zeros(0, np.bool_)])


def _record(found: list[Any]) -> UrlRecord:
    row = np.frombuffer(found[1], ROW)[0]
    lease = msgspec.msgpack.decode(found[4]) if found[4] else (None, None, None)
    return UrlRecord(
        url=found[2].decode(),
        state=STATES[int(row["state"])],
        reason=found[3].decode() if found[3] else None,
        priority=float(row["priority"]),
        crawler_id=lease[0],
        lease_expires=lease[2],
        status=int(row["status"]) or None,
        fetched=None if np.isnan(row["fetched"]) else float(row["fetched"]),
    )


def _links(found: list[Any] | None) -> list[tuple[bytes, list[Any]]]:
    pairs = found[6] if found else []
    return [(other, msgspec.msgpack.decode(link)) for other, link in zip(pairs[::2], pairs[1::2], strict=True)]


def _paths(rows: list[tuple[bytes, bytes, list[Any]]]) -> Paths:
    parents, children, _ = zip(*rows, strict=True) if rows else ((), (), ())
    position = np.array([link[1] for _, _, link in rows], np.int32)
    return Paths(_ids(*parents), _ids(*children), texts(link[0] for _, _, link in rows), position)
