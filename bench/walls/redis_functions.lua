#!lua name=crawlguide
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
