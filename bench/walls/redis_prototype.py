"""A throw-away proof that asks and tells can live on Redis Cluster; not the store that will ship.

The top byte of an id is its domain's partition, so a domain's rows, queues and politeness buckets share one hash tag
("{p17}"). Every step is one Redis function on one tag, so it is atomic there and nowhere else. What crosses tags
(evidence on a child that lives elsewhere) is a call of its own and *sets* what a parent says: it may be sent again.
An ask is `gather`, then `reserve`, on at most TOUCHED partitions; which ones, hints of earlier replies say.
Left out: quotas, scan, purge, recrawls, the link table, answers, learned state, deleting, pages per domain; and a
parent that takes its relevance back lowers `parent_sum`, not `parent_best`.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import orjson

from crawlguide.core import urls
from crawlguide.core.columns import texts
from crawlguide.core.tables import column_names
from crawlguide.core.types import Batch, Crawl, Discovery, Fetches, Grants, Hosts, Recorded, UrlRecord
from crawlguide.store.rows import DROPPED, HOST, LEASED, PACE, QUEUED, ROW, STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from redis.asyncio import Redis

    from crawlguide.core.tables import F64, I64, U64, column_names
    from crawlguide.core.types import Ask, LeaseTerms, Links

TOUCHED = 4  # partitions of an ask
AT_ONCE = 500  # items of one call, so that no call holds the server for long
NO_BOUND = 2**31 - 1
# The order of the facts in core.types.Batch and core.types.Hosts, as far as they are fields of ROW and HOST.
FACTS = (
    "arm",
    "depth",
    "sequence",
    "discovered",
    "fetched",
    "parents",
    "parent_sum",
    "parent_best",
    "given",
    "priority",
)
HOST_FACTS = ("pages", "failures", "errors", "judged", "relevance_sum", "domain")

LUA = r"""#!lua name=crawlguide
local inf, nan = 1/0, 0/0  -- while a library loads, Lua's own libraries are not there yet
local function call(...) return redis.call(...) end
local QUEUED, LEASED, DONE, DROPPED, FREE, DEEPEST = 0, 1, 2, 3, 4, 2147483647
local NAMES = {[0] = 'queued', 'leased', 'done'}

local ZERO = {__index = function() return 0 end}
local function blank(known) return setmetatable(known, ZERO) end  -- a new record: what is not said is 0
local function codec(format, names)  -- a numpy record as a Lua table, and back
  return function(bytes)
    local values, found = {struct.unpack(format, bytes)}, {}
    for i = 1, #names do found[names[i]] = values[i] end
    return found
  end, function(found)
    local values = {}
    for i = 1, #names do values[i] = found[names[i]] end
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
local function row(s, id)
  if s.rows[id] == nil then
    local bytes = call('HGET', s.k .. 'rows', id)
    local r = bytes and row_read(bytes)
    if r then r.at, r.url = bytes:match('^([^\n]*)\n(.*)$', ROW + 1) end
    s.rows[id] = r
  end
  return s.rows[id]
end
local function host(s, name)
  if not s.hosts[name] then
    local bytes = call('HGET', s.k .. 'hosts', name)
    s.hosts[name] = bytes and host_read(bytes) or blank({withheld = -inf})
  end
  return s.hosts[name]
end
local function pace(s, name)
  if not s.paces[name] then
    local bytes = call('HGET', s.p .. 'pace', name)
    s.paces[name] = bytes and pace_read(bytes) or blank({last = -inf, next_fetch = -inf, blocked = -inf, delay = nan,
      median_ms = nan, median_bytes = nan})
  end
  return s.paces[name]
end
local function claim(s, id, url, name, sequence, at)
  if row(s, id) then return s.rows[id], false end
  host(s, name)
  s.rows[id] = blank({sequence = sequence, discovered = at, fetched = nan, given = nan, relevance = nan, first_in = -1,
    first_out = -1, arm = -1, stamp = -1, depth = DEEPEST, max_depth = -1, state = FREE, at = name, url = url})
  return s.rows[id], true
end
local function lease_of(s, id)
  local bytes = call('HGET', s.k .. 'lease', id)
  return bytes and cmsgpack.unpack(bytes) or {}
end

-- A host stands in `open` by its best row, or in `shut` by the instant at which it opens.
local function place(s, name, how)  -- 'settle' leaves a shut host shut, 'reopen' does not, a number shuts it till then
  local old, head = call('HGET', s.k .. 'heads', name), call('ZRANGE', s.k .. 'q:' .. name, 0, 0, 'WITHSCORES')
  if how == 'settle' and head[1] and call('ZSCORE', s.k .. 'shut', name) then return end
  local shut = type(how) == 'number'
  local new = head[1] and not shut and head[1] .. name
  if old and old ~= new then call('ZREM', s.k .. 'open', old); call('HDEL', s.k .. 'heads', name) end
  if new then call('ZADD', s.k .. 'open', head[2], new); call('HSET', s.k .. 'heads', name, new) end
  if shut then call('ZADD', s.k .. 'shut', how, name) else call('ZREM', s.k .. 'shut', name) end
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
  for name, how in pairs(s.open) do place(s, name, how) end
  for name, n in pairs(s.counts) do if n ~= 0 then call('HINCRBY', s.k .. 'counts', name, n) end end
  s.rows, s.hosts, s.paces, s.open, s.counts = {}, {}, {}, {}, {}
  local soon = math.min(first(s.k .. 'shut'), first(s.k .. 'later'), first(s.k .. 'leases'))
  return struct.pack('<dd', first(s.k .. 'open'), soon)
end

local function member(id, r) return string.format('%016x', r.sequence) .. id end
local function unlease(s, id, r)
  call('SREM', s.k .. 'held:' .. lease_of(s, id)[1], id)
  call('HDEL', s.k .. 'lease', id)
  call('ZREM', s.k .. 'leases', id)
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
end

local function openings(s, names)  -- when each host may be fetched, read off its two records
  local found, paces, hosts = {}, many(s.p .. 'pace', names), many(s.k .. 'hosts', names)
  for i = 1, #names do
    found[i] = hosts[i] and struct.unpack('<d', hosts[i], @WITHHELD@) or -inf
    if paces[i] then
      local next_fetch, blocked = struct.unpack('<dd', paces[i], @NEXT@)
      found[i] = math.max(found[i], next_fetch, blocked)
    end
  end
  return found
end
local function best(s, a)  -- merges the queues of open hosts, best first: O(rows given), whatever waits
  local found, waiting, last, offset = {}, {}, nil, 0
  local function after(x, y) return x.score > y.score or (x.score == y.score and x.order > y.order) end
  local function wait(name, given, order, score)  -- the best stands last
    local h, low, high = {name = name, given = given, order = order, score = tonumber(score)}, 1, #waiting + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if after(waiting[middle], h) then low = middle + 1 else high = middle end
    end
    table.insert(waiting, low, h)
  end
  local function more()  -- the next best hosts; shut ones are set aside on the way
    local heads, names = call('ZRANGE', s.k .. 'open', offset, offset + 31, 'WITHSCORES'), {}
    for i = 1, #heads, 2 do names[#names + 1] = heads[i]:sub(33) end
    for i, till in ipairs(openings(s, names)) do
      last = {order = heads[2 * i - 1]:sub(1, 32), score = tonumber(heads[2 * i])}
      if till > a.till then place(s, names[i], till)
      else wait(names[i], 0, last.order, last.score); offset = offset + 1 end
    end
    if #names < 32 then last = {order = '', score = inf} end
  end
  while #found < a.limit do
    while not last or (last.score < inf and (not waiting[1] or after(waiting[#waiting], last))) do more() end
    local h = table.remove(waiting)
    if not h then break end
    found[#found + 1] = h.order:sub(17)
    local n = h.given + 1
    local follower = n < a.per_host and call('ZRANGE', s.k .. 'q:' .. h.name, n, n, 'WITHSCORES') or {}
    if follower[1] then wait(h.name, n, unpack(follower)) end
  end
  return found
end
local function shown(s, ids, hint)  -- rows as numpy will read them, joined with their hosts
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
  local paces = many(s.p .. 'pace', names)
  for i, name in ipairs(names) do paces[i] = paces[i] or pace_write(pace(s, name)) end
  return {hint, table.concat(known), table.concat(rows), table.concat(urls, '\n'), table.concat(where),
          table.concat(names, '\n'), table.concat(many(s.k .. 'hosts', names)), table.concat(paces)}
end

local on = {}
function on.gather(s, a)
  wake(s, a.at)
  for _, name in ipairs(call('ZRANGEBYSCORE', s.k .. 'shut', '-inf', a.till, 'LIMIT', 0, 1000)) do
    s.open[name] = 'reopen'
  end
  flush(s)
  local ids, seen, allowed = best(s, a), {}, openings(s, a.focus)
  for _, id in ipairs(ids) do seen[id] = true end
  for i, name in ipairs(a.focus) do
    for _, m in ipairs(allowed[i] <= a.till and call('ZRANGE', s.k .. 'q:' .. name, 0, 9) or {}) do
      if not seen[m:sub(17)] then ids[#ids + 1] = m:sub(17) end
    end
  end
  return shown(s, ids, flush(s))
end
function on.look(s, a) return shown(s, a.items, flush(s)) end

function on.reserve(s, a)
  local outcomes, starts, ends = {}, {}, a.at + a.lease_s
  for i, id in ipairs(a.items) do
    local r, outcome, slot = row(s, id), 2, a.at
    if r and r.state == QUEUED then
      local p = pace(s, r.at)
      local own = p.delay ~= p.delay and a.delay_s or p.delay
      local full = (a.strict and p.leases > 0) or (p.limit > 0 and p.leases >= p.limit)
      slot = math.max(a.at, p.next_fetch, p.blocked, p.last + own)
      slot = a.at + math.ceil((slot - a.at) * 1000 - 1e-3) / 1000
      if full then slot = math.max(slot, a.at + own) end
      outcome = (full or slot > a.at + a.horizon_s) and 1 or 0
      if outcome == 0 then
        p.last, p.next_fetch, p.leases = slot, slot + own, p.leases + 1
        move(s, id, r, LEASED)
        call('HSET', s.k .. 'lease', id, cmsgpack.pack({a.crawler_id, a.request_id or '', ends, slot, a.strict}))
        call('ZADD', s.k .. 'leases', ends, id)
        call('SADD', s.k .. 'held:' .. a.crawler_id, id)
        if a.strict then s.open[r.at] = ends end
      end
    elseif r and r.state == LEASED and a.request_id then  -- this request was here before: it keeps what it got
      local lease = lease_of(s, id)
      if lease[1] == a.crawler_id and lease[2] == a.request_id then outcome, slot = 0, lease[4] end
    end
    outcomes[i], starts[i] = string.char(outcome), struct.pack('<d', slot)
  end
  return {flush(s), table.concat(outcomes), table.concat(starts), many(s.k .. 'metadata', a.items)}
end

local function judge(s, id, r, relevance, told)  -- `told`: what the children, wherever they live, have to hear
  local before, h, children = r.relevance, host(s, r.at), call('SMEMBERS', s.k .. 'out:' .. id)
  r.relevance = relevance
  count(s, 'relevant', (relevance >= 0.5 and 1 or 0) - (before >= 0.5 and 1 or 0))
  if relevance == relevance then
    h.relevance_sum = h.relevance_sum + relevance - (before == before and before or 0)
    h.judged = h.judged + (before == before and 0 or 1)
  end
  local known = tostring(relevance == relevance and relevance or 0.5)
  if children[1] then told[#told + 1] = {id, known, table.concat(children)} end
end
local function remembered(s, key, name, counted, value)
  local ring = call('HGET', s.p .. key, name)
  ring = ring and cmsgpack.unpack(ring) or {}
  ring[counted % 15 + 1] = value
  call('HSET', s.p .. key, name, cmsgpack.pack(ring))
  table.sort(ring)
  return ring[math.floor((#ring - 1) / 2) + 1]
end
local function paced(s, name, f, at)
  local p, slow, wait = pace(s, name), f.status == 429 or f.status == 503, 0
  p.fetches, p.failures = p.fetches + 1, p.failures + (f.failed and 1 or 0)
  if f.elapsed_ms >= 0 then p.median_ms, p.timed = remembered(s, 'ms', name, p.timed, f.elapsed_ms), p.timed + 1 end
  if f.bytes >= 0 and not f.failed then
    p.median_bytes, p.weighed = remembered(s, 'bytes', name, p.weighed, f.bytes), p.weighed + 1
  end
  if slow then p.backoff = math.min(math.max(2 * p.backoff, 2), 3600)
  elseif f.status >= 200 and f.status < 400 then p.backoff = p.backoff >= 2 and p.backoff / 2 or 0 end
  if f.retry_after_s >= 0 then wait = f.retry_after_s elseif slow then wait = p.backoff end
  if wait > 0 then p.blocked = math.max(p.blocked, at + math.min(wait, 86400)) end
end
local function finish(s, f, at, told)  -- the page that the content belongs to; after a redirect as deep as its source
  local r = claim(s, f.target_id, f.target_url, f.target_host, f.sequence, at)
  if f.target_id ~= f.id and r.fetched ~= r.fetched and r.parents == 0 then r.max_depth = f.bound end
  r.depth = math.min(r.depth, f.depth)
  r.status, r.fetched = math.max(f.status, 0), at
  if r.state ~= DONE then move(s, f.target_id, r, DONE) end
  judge(s, f.target_id, r, f.failed and 0 or f.relevance, told)
end
local PASSING = {timeout = true, dns = true, connect = true}
local function fetched(s, f, a, told, elsewhere)  -- returns why it was skipped, or ''
  local r = row(s, f.id)
  if f.status < 0 and f.error == '' then
    if not r or r.fetched ~= r.fetched then return 'never_fetched' end
    return judge(s, f.id, r, math.min(math.max(f.reward, 0), 1), told) or ''
  elseif f.error == 'released' then
    if not r or r.state ~= LEASED or lease_of(s, f.id)[1] ~= a.crawler then return 'not_leased' end
    return move(s, f.id, r, QUEUED) or ''
  elseif f.fetch_time ~= '' then
    if tonumber(call('ZSCORE', s.k .. 'told', f.id .. f.fetch_time) or '-inf') > a.at then return 'duplicate' end
    call('ZADD', s.k .. 'told', a.at + 86400, f.id .. f.fetch_time)
  end
  r = claim(s, f.id, f.url, f.host, f.sequence, a.at)
  if r.depth == DEEPEST then r.depth = 0 end
  local p, h, kind = pace(s, r.at), host(s, r.at), f.failed and 'failures' or 'pages'
  local passing = PASSING[f.error] or (f.error == '' and (f.status == 429 or f.status >= 500))
  local strict = r.state == LEASED and lease_of(s, f.id)[5]
  if strict then p.last = math.max(p.last, a.at) end
  h[kind], h.errors = h[kind] + 1, h.errors + ((passing or f.error == 'tls') and 1 or 0)
  paced(s, r.at, f, a.at)
  count(s, 'fetches', 1)
  count(s, 'failed', f.failed and 1 or 0)
  r.status, r.fetched = math.max(f.status, 0), a.at
  if f.failed and passing and (r.state == DROPPED or r.tries < a.max_retries) then
    if r.state == DROPPED then return '' end
    r.tries = r.tries + 1
    return move(s, f.id, r, QUEUED, a.at + math.min(10 * 2 ^ (r.tries - 1), 3600)) or ''
  end
  r.tries, f.depth, f.bound = 0, r.depth, r.max_depth
  if r.state ~= DONE then move(s, f.id, r, DONE) end
  if f.here then finish(s, f, a.at, told) else elsewhere[#elsewhere + 1] = cmsgpack.pack(f) end
  return ''
end
function on.record(s, a)
  local told, skips, elsewhere = {}, {}, {}
  call('ZREMRANGEBYSCORE', s.k .. 'told', '-inf', a.at)
  for i, f in ipairs(a.items) do  -- one that was sent on by another partition knows its depth already
    skips[i] = f.depth and (finish(s, f, a.at, told) or '') or fetched(s, f, a, told, elsewhere)
  end
  return {flush(s), told, skips, elsewhere}
end

local function hear(s, id, r, parent, relevance)  -- a parent says it once, and may correct itself
  local old = call('HGET', s.k .. 'in:' .. id, parent)
  r.parents = r.parents + (old and 0 or 1)
  r.parent_sum = r.parent_sum + relevance - (old or 0)
  r.parent_best = math.max(r.parent_best, relevance)
  call('HSET', s.k .. 'in:' .. id, parent, relevance)
end
function on.evidence(s, a)
  for _, e in ipairs(a.items) do if row(s, e[1]) then hear(s, e[1], row(s, e[1]), e[2], e[3]) end end
  return {flush(s)}
end
function on.outlinks(s, a)  -- the parent's side of its links; returns how deep it lies and may lie
  local depths = {}
  for i, page in ipairs(a.items) do
    local r = row(s, page[1])
    call('DEL', s.k .. 'out:' .. page[1])
    for _, child in ipairs(page[2]) do call('SADD', s.k .. 'out:' .. page[1], child) end
    depths[i] = {r and r.depth or -1, r and r.max_depth or -1}
  end
  return {flush(s), depths}
end
function on.discover(s, a)
  local new = 0
  for _, l in ipairs(a.items) do
    local id, url, name, sequence, given, depth, bound, _, metadata, parent, relevance = unpack(l)
    local r, fresh = claim(s, id, url, name, sequence, a.at)
    r.depth = math.min(r.depth, depth)
    if parent ~= '' then hear(s, id, r, parent, relevance)
    elseif r.parents == 0 then r.parents, r.parent_sum, r.parent_best = 1, 1, 1 end
    if given == given then r.given = given end
    if fresh then r.max_depth, new = bound, new + 1
    else r.max_depth = (bound < 0 or r.max_depth < 0) and -1 or math.max(bound, r.max_depth) end
    if metadata then call('HSETNX', s.k .. 'metadata', id, metadata) end
  end
  for _, l in ipairs(a.items) do
    local id, r, depth, bound, reason = l[1], s.rows[l[1]], l[6], l[7], l[8]
    local refused = reason ~= '' or (bound >= 0 and depth > bound) or (a.deepest >= 0 and depth > a.deepest)
    if r.state == FREE and refused then move(s, id, r, DROPPED, reason ~= '' and reason or 'scope')
    elseif r.state == FREE then
      r.priority = r.given == r.given and r.given or r.parent_sum / math.max(r.parents, 1)
      move(s, id, r, QUEUED)
    elseif r.state == DROPPED and not refused and call('HGET', s.k .. 'why', id) == 'scope' then
      move(s, id, r, QUEUED)
    end
  end
  call('SADD', s.p .. 'crawls', s.k)
  return {flush(s), new}
end
function on.rank(s, a)
  for _, item in ipairs(a.items) do
    local id, r = item[1], row(s, item[1])
    if r then
      r.priority, s.open[r.at] = item[2], s.open[r.at] or 'settle'
      if r.state == QUEUED then call('ZADD', s.k .. 'q:' .. r.at, 'XX', -r.priority, member(id, r)) end
    end
  end
  return {flush(s)}
end
function on.alter(s, a)  -- drop, revive, release: named moves of some rows
  local n = 0
  for _, id in ipairs(a.crawler and call('SMEMBERS', s.k .. 'held:' .. a.crawler) or a.items) do
    local r = row(s, id)
    local deep = r and a.deepest and r.depth > math.min(r.max_depth < 0 and inf or r.max_depth, a.deepest)
    if r and r.state == a.from and not deep then move(s, id, r, a.to, a.reason); n = n + 1 end
  end
  return {flush(s), n}
end
function on.find(s, a)
  local found = {}
  for i, bytes in ipairs(many(s.k .. 'rows', a.items)) do
    local id = a.items[i]
    found[i] = bytes and {bytes:sub(1, ROW), bytes:match('\n(.*)$', ROW + 1), call('HGET', s.k .. 'why', id),
      call('HGET', s.k .. 'lease', id)}
  end
  return {flush(s), found}
end
function on.withhold(s, a)
  host(s, a.host).withheld, s.open[a.host] = a.till, 'reopen'
  return {flush(s)}
end
function on.control(s, a)  -- a queue's pace is everybody's: every crawl of this partition looks at it anew
  local p = pace(s, a.queue)
  if a.delay_s then p.delay, p.next_fetch = a.delay_s, p.last + a.delay_s end
  if a.block_until then p.blocked = a.block_until end
  if a.limit then p.limit = a.limit end
  for _, k in ipairs(call('SMEMBERS', s.p .. 'crawls')) do place({k = k}, a.queue, 'reopen') end
  return {flush(s)}
end
function on.stats(s) return {flush(s), call('HGETALL', s.k .. 'counts')} end
local function register(name)
  redis.register_function('cg_' .. name, function(keys, args) return on[name](view(keys), cmsgpack.unpack(args[1])) end)
end
"""

CODES = {"i8": "i8", "i4": "i4", "i2": "i2", "u1": "B", "f8": "d", "f4": "f"}


def _source() -> str:
    """The functions, with numpy's records as formats and names for Lua, so that the two sides cannot drift apart."""
    source = LUA + "".join(f"register('{name}')\n" for name in re.findall(r"^function on\.(\w+)", LUA, re.MULTILINE))
    source = source.replace("@SIZE@", str(ROW.itemsize))
    for name, record in (("ROW", ROW), ("HOST", HOST), ("PACE", PACE)):
        fields: Mapping[str, Any] = record.fields or {}
        codes = [CODES[field[0].str[1:]] for field in fields.values()]
        padding = record.itemsize - max(field[1] + field[0].itemsize for field in fields.values())
        format_and_names = f"'<{''.join(codes)}{'x' * padding}', {{{', '.join(map(repr, fields))}}}"
        source = source.replace(f"@{name}@", format_and_names)
        for place, wanted in (("NEXT", "next_fetch"), ("WITHHELD", "withheld")):
            if wanted in fields:
                source = source.replace(f"@{place}@", str(fields[wanted][1] + 1))
    return source


class RedisPrototype:
    """The part of `Store` that asks and tells need."""

    def __init__(self, redis: Redis, partitions: int = 256) -> None:
        """`partitions`: a power of two, at most 256."""
        self.redis, self._partitions = redis, partitions
        self._hints: dict[Crawl, dict[int, tuple[float, float]]] = {}
        self.calls: list[tuple[str, int]] = []  # what the tests count

    async def load(self) -> None:
        await self.redis.function_load(_source(), replace=True)

    def partition(self, host: str) -> int:
        return urls.partition(host) % self._partitions

    def partitions(self, ids: U64) -> I64:
        return (ids >> np.uint64(56)).astype(np.int64) % self._partitions

    async def _call(self, crawl: Crawl, function: str, calls: Iterable[tuple[int, dict[str, Any]]]) -> list[list[Any]]:
        """One function on some partitions, side by side; their hints are kept."""
        calls, hints = list(calls), self._hints.setdefault(crawl, {})
        name = orjson.dumps(list(crawl)).decode()
        pipe = self.redis.pipeline(transaction=False)
        for tag, query in calls:
            pipe.fcall(f"cg_{function}", 1, f"{{p{tag}}}:{name}", msgspec.msgpack.encode(query))
        replies: list[list[Any]] = await pipe.execute()
        for (tag, _), reply in zip(calls, replies, strict=True):
            self.calls.append((function, tag))
            hints[tag] = tuple(np.frombuffer(reply[0]).tolist())
        return replies

    async def _send(self, crawl: Crawl, function: str, ids: U64, items: Sequence[Any], **query: Any) -> Any:
        """Items to where their ids live, in pieces; the numbers of the items of each piece, and the reply to it."""
        tags = self.partitions(ids)
        order = np.argsort(tags, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(tags[order])) + 1)
        pieces = [rows[n : n + AT_ONCE].tolist() for rows in groups for n in range(0, len(rows), AT_ONCE)]
        calls = [(int(tags[rows[0]]), query | {"items": [items[n] for n in rows]}) for rows in pieces]
        return list(zip(pieces, await self._call(crawl, function, calls), strict=True))

    async def _everywhere(self, crawl: Crawl, function: str, **query: Any) -> list[Any]:
        """For what no id leads to."""
        return [reply[1] for reply in await self._call(crawl, function, [(n, query) for n in range(self._partitions)])]

    # crawls, as far as the contract needs them

    async def crawl_put(self, crawl: Crawl, definition: bytes, at: float) -> bool:  # noqa: ARG002
        return bool(await self.redis.hset(f"crawls:{crawl.tenant}", crawl.name, definition))

    async def crawl_list(self, tenant: str) -> list[Crawl]:
        names = await self.redis.hkeys(f"crawls:{tenant}")
        return sorted(Crawl(tenant, name if isinstance(name, str) else name.decode()) for name in names)

    # an ask

    async def gather(self, crawl: Crawl, ask: Ask, limit: int, horizon_s: float, per_host: int) -> Batch:
        till = ask.at + horizon_s
        query = {"at": ask.at, "till": till, "limit": limit, "per_host": per_host}
        tags = await self._chosen(crawl, ask, till)
        calls = [(tag, query | {"focus": [h for h in ask.focus if self.partition(h) == tag]}) for tag in tags]
        batch = _batch(await self._call(crawl, "gather", calls))
        order = np.lexsort((batch.sequence, -batch.priority))
        focus = np.isin(np.array(batch.hosts.name.tolist(), str), list(ask.focus))[batch.host[order]]
        return batch.take(order[(np.arange(len(order)) < limit) | focus])

    async def _chosen(self, crawl: Crawl, ask: Ask, till: float) -> list[int]:
        """At most TOUCHED partitions: those of the focus, then those with the best open rows."""
        if self._partitions <= TOUCHED:
            return list(range(self._partitions))
        if len(self._hints.get(crawl, {})) < self._partitions:  # once; a shipped store would share hints by a key
            await self._everywhere(crawl, "stats")
        hints, focus = self._hints[crawl], {self.partition(host) for host in ask.focus}
        ready = [tag for tag, (best, soon) in hints.items() if best < np.inf or soon <= till]
        return sorted(ready, key=lambda tag: (tag not in focus, hints[tag][0]))[:TOUCHED]

    async def reserve(self, crawl: Crawl, batch: Batch, terms: LeaseTerms) -> Grants:
        outcome, start, metadata = np.empty(len(batch), np.uint8), np.empty(len(batch)), np.empty(len(batch), object)
        for rows, reply in await self._send(crawl, "reserve", batch.id, _raw(batch.id), **asdict(terms)):
            outcome[rows], start[rows] = np.frombuffer(reply[1], np.uint8), np.frombuffer(reply[2])
            metadata[rows] = reply[3]
        return Grants(outcome, start, metadata.tolist())

    # a tell

    async def record(self, crawl: Crawl, fetches: Fetches, at: float, max_retries: int) -> Recorded:
        """Fetched pages, then targets of redirects elsewhere, then evidence for children elsewhere: three rounds."""
        skipped: list[str | None] = [None] * len(fetches)
        told, elsewhere = [], []
        query = {"at": at, "max_retries": max_retries, "crawler": fetches.crawler_id}
        for rows, reply in await self._send(crawl, "record", fetches.id, await self._fetched(crawl, fetches), **query):
            told += reply[1]
            elsewhere += [msgspec.msgpack.decode(item) for item in reply[3]]
            for row, skip in zip(rows, reply[2], strict=True):
                skipped[row] = skip.decode() or None
        targets = _ids(*(item["target_id"].encode() for item in elsewhere))
        for _, reply in await self._send(crawl, "record", targets, elsewhere, **query):
            told += reply[1]
        heard = [
            (children[n : n + 16].decode(), parent.decode(), float(relevance))
            for parent, relevance, children in told
            for n in range(0, len(children), 16)
        ]
        children = _ids(*(children for _, _, children in told))
        await self._send(crawl, "evidence", children, heard)
        return Recorded(skipped, np.unique(children))

    async def _fetched(self, crawl: Crawl, fetches: Fetches) -> list[dict[str, Any]]:
        first, here = await self._numbers(crawl, len(fetches)), self.partitions(fetches.id)
        columns: dict[str, Any] = {name: getattr(fetches, name).tolist() for name in column_names(Fetches)}
        columns |= {"id": _raw(fetches.id), "target_id": _raw(fetches.target_id)}
        columns |= {"sequence": range(first, first + len(fetches))}
        columns |= {"failed": ((fetches.error != "") | (fetches.status >= 400)).tolist()}
        columns |= {"here": (here == self.partitions(fetches.target_id)).tolist()}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    async def _numbers(self, crawl: Crawl, count: int) -> int:
        """Numbers of discovery, from one counter a crawl: the only key that every tell shares."""
        return int(await self.redis.incrby(f"sequence:{orjson.dumps(list(crawl)).decode()}", count)) - count

    async def discover(self, crawl: Crawl, links: Links, parents: Fetches | None, at: float) -> Discovery:
        """First where the pages live (their links, how deep they lie), then where the links lead."""
        first = await self._numbers(crawl, len(links))
        pages = await self._outlinks(crawl, links, parents) if parents is not None else {}
        names = ("parent", "url", "host", "given", "max_depth", "reason", "metadata")
        columns = [getattr(links, name).tolist() for name in names]
        items: list[Any] = []
        for id_, page, url, host, given, bound, reason, metadata in zip(_raw(links.id), *columns, strict=True):
            parent, relevance, depth, inherited = pages.get(page, ("", 1.0, -1, -1))
            tightest = min([b for b in (bound, inherited) if b >= 0], default=-1)
            what = (id_, url, host, first + len(items), given, depth + 1, tightest, reason or "")
            items.append((*what, metadata.decode() if metadata else False, parent, relevance))
        replies = await self._send(crawl, "discover", links.id, items, at=at, deepest=links.deepest)
        return Discovery(sum(reply[1] for _, reply in replies), links.id, links.id[:0])  # which were new is not told

    async def _outlinks(self, crawl: Crawl, links: Links, parents: Fetches) -> dict[int, tuple[str, float, int, int]]:
        """Per page its id, relevance, depth and bound. Neither links nor fetches carry the last two."""
        ids, children = _raw(parents.target_id), _raw(links.id)
        pages = np.unique(links.parent[links.parent >= 0]).tolist()
        items = [(ids[page], [children[n] for n in np.flatnonzero(links.parent == page)]) for page in pages]
        relevance = np.where(np.isnan(parents.relevance), 0.5, parents.relevance).tolist()
        return {
            pages[row]: (ids[pages[row]], relevance[pages[row]], depth, bound)
            for rows, reply in await self._send(crawl, "outlinks", parents.target_id[pages], items)
            for row, (depth, bound) in zip(rows, reply[1], strict=True)
        }

    async def rank(self, crawl: Crawl, ids: U64, priority: F64) -> None:
        await self._send(crawl, "rank", ids, list(zip(_raw(ids), priority.tolist(), strict=True)))

    async def look(self, crawl: Crawl, ids: U64) -> Batch:
        batch = _batch([reply for _, reply in await self._send(crawl, "look", ids, _raw(ids))])
        place = {id_: n for n, id_ in enumerate(batch.id.tolist())}
        return batch.take(np.array([place[id_] for id_ in ids.tolist() if id_ in place], np.intp))

    async def find(self, crawl: Crawl, ids: U64) -> list[UrlRecord | None]:
        found: list[UrlRecord | None] = [None] * len(ids)
        for rows, reply in await self._send(crawl, "find", ids, _raw(ids)):
            for row, one in zip(rows, reply[1], strict=True):
                found[row] = _record(*one) if one else None
        return found

    async def drop(self, crawl: Crawl, ids: U64, reason: str) -> None:
        query = {"from": QUEUED, "to": DROPPED, "reason": reason}
        await self._send(crawl, "alter", ids, _raw(ids), **query)

    async def revive(self, crawl: Crawl, ids: U64, deepest: int = -1) -> None:
        query = {"from": DROPPED, "to": QUEUED, "deepest": deepest if deepest >= 0 else NO_BOUND}
        await self._send(crawl, "alter", ids, _raw(ids), **query)

    async def release(self, crawl: Crawl, crawler_id: str) -> int:
        return sum(await self._everywhere(crawl, "alter", **{"crawler": crawler_id, "from": LEASED, "to": QUEUED}))

    async def withhold(self, crawl: Crawl, hosts: Sequence[str], until: F64) -> None:
        pairs = zip(hosts, until.tolist(), strict=True)
        await self._call(crawl, "withhold", [(self.partition(h), {"host": h, "till": till}) for h, till in pairs])

    async def control(self, queue: str, **given: float | None) -> None:
        await self._call(Crawl("", ""), "control", [(self.partition(queue), {"queue": queue} | given)])  # of no crawl
        self._hints.clear()

    async def wait(self, crawl: Crawl, at: float) -> float | None:
        await self._everywhere(crawl, "stats")
        best, soon = np.array(list(self._hints[crawl].values())).min(0).tolist()
        if best < np.inf:
            return 0.0
        return max(soon - at, 0.0) if soon < np.inf else None

    async def stats(self, crawl: Crawl) -> Mapping[str, Any]:
        total = dict.fromkeys((*STATES[:3], "fetches", "failed", "relevant"), 0)
        for counts in await self._everywhere(crawl, "stats"):
            for name, number in zip(counts[::2], counts[1::2], strict=True):
                total[name.decode()] = total.get(name.decode(), 0) + int(number)
        dropped = {name[8:]: total.pop(name) for name in list(total) if name.startswith("dropped:")}
        return {**total, "dropped": {reason: number for reason, number in dropped.items() if number}}

    async def close(self) -> None:
        await self.redis.aclose()


def _raw(ids: U64) -> list[str]:
    """Ids as text: Lua's numbers end at 2**53, and its msgpack knows no binary strings."""
    whole = ids.tobytes().hex()
    return [whole[n : n + 16] for n in range(0, len(whole), 16)]


def _ids(*raw: bytes) -> U64:
    return np.frombuffer(bytes.fromhex(b"".join(raw).decode()), np.uint64)


def _lines(joined: bytes) -> list[str]:
    return joined.decode().split("\n") if joined else []


def _batch(replies: list[list[Any]]) -> Batch:
    rows, mine, pace = (
        np.frombuffer(b"".join(reply[n] for reply in replies), kind) for n, kind in ((2, ROW), (6, HOST), (7, PACE))
    )
    names = [_lines(reply[5]) for reply in replies]
    offsets = np.cumsum([0, *map(len, names)])[:-1]
    places = [np.frombuffer(r[4], np.int64) + offset for r, offset in zip(replies, offsets, strict=True)]
    host: I64 = np.concatenate([*places, np.zeros(0, np.int64)])
    medians, opens = [pace["median_ms"], pace["median_bytes"]], np.maximum(pace["next_fetch"], pace["blocked"])
    pages = mine["pages"] + pace["leases"]  # of the host; its domain's lie in the same partition, nobody adds them up
    queue = [*medians, pace["delay"], pace["last"], opens, pace["leases"], pace["limit"]]
    known = np.array([*(mine[name] for name in HOST_FACTS), pages, *queue], np.float64)
    estimates = [*(median[host] for median in medians), rows["priority"], rows["priority"]]
    facts = np.array([*(rows[name] for name in FACTS), *estimates], np.float64)
    ids, found = _ids(*(reply[1] for reply in replies)), texts(url for reply in replies for url in _lines(reply[3]))
    return Batch(found, ids, host, facts, Hosts(texts(name for some in names for name in some), known))


def _record(bytes_: bytes, url: bytes, why: bytes | None, lease: bytes | None) -> UrlRecord:
    row = np.frombuffer(bytes_, ROW)[0]
    who, _, ends, *_ = msgspec.msgpack.decode(lease) if lease else (None, None, None)
    status, fetched = int(row["status"]) or None, None if np.isnan(row["fetched"]) else float(row["fetched"])
    reason, priority = why.decode() if why else None, float(row["priority"])
    return UrlRecord(url.decode(), STATES[int(row["state"])], reason, priority, who, ends, status, fetched)
