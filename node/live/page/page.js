// The page `/live`: signs in, asks for a list of orders and shows what comes of it. The token is
// kept in memory only; what is asked stands in the address behind `#`.

/* global document, fetch, location, history, performance, setInterval, FormData, URLSearchParams, WebSocket */

import { LiveConnection } from './connection.mjs'
import { Pace, aheadOf } from './pace.mjs'
import { tokenOf } from '../../sign-in.mjs'
import { Table } from './table.js'

const DEFAULTS = {
  filter: '',
  orderBy: 'createdAt desc',
  limit: '20',
  fields: 'orderNumber, customerNumber, orderState, orderTotal, currencyCode, lastModified',
}
/** How often the numbers are shown anew, and how often they are told to a screen reader. */
const NUMBERS_MS = 500
const NEWS_MS = 10_000
/** Of so many requests the quickest tells how far the node's clock is ahead. */
const CLOCK_TRIES = 4
/** What is shown of a filter before and behind the place where it is wrong. */
const CONTEXT_CHARS = 60

const at = (id) => document.getElementById(id)
const [signInForm, queryForm] = [at('sign-in'), at('query')]
const nowMs = () => performance.timeOrigin + performance.now()

let ahead = null
let pace = new Pace(nowMs())
let isPaused = false
/** Changes that a pause holds back. */
let held = 0
const counts = { add: 0, update: 0, remove: 0 }
const untold = { add: 0, update: 0, remove: 0 }

// --- what is told of ----------------------------------------------------------------------

function show(state, { waitMs, message } = {}) {
  const says = {
    off: 'Signed out',
    connecting: 'Connecting …',
    idle: 'Connected',
    live: 'Live',
    waiting: `Connection lost, next try in ${((waitMs ?? 0) / 1000).toFixed(1)} s`,
  }
  at('state').dataset.state = state
  at('said').textContent = says[state]
  at('hurry').hidden = state !== 'waiting'
  // Told once, not at each try.
  if (state === 'waiting') at('news').textContent = 'Connection lost'
  if (state === 'live') at('news').textContent = says.live
  if (state === 'off') askWho(message ?? '')
  if (state === 'live') void compareClocks()
  table.due()
}

function changed(change, frame) {
  const { rows } = connection.list
  if (change !== 'all') {
    counts[change]++
    if (isPaused) held++
    untold[change]++
    const hasTime = change === 'update' || (change === 'add' && !fellIn(frame, rows.length))
    pace.count(nowMs(), hasTime ? lagOf(frame.node) : null)
  }
  wasRemoved = change === 'remove'
  table.due()
}

/** A node that another has made room for has not changed itself. */
let wasRemoved = false
const fellIn = ({ index }, length) => wasRemoved && index === length - 1

function lagOf({ lastModified }) {
  if (ahead === null || typeof lastModified !== 'string') return null
  return nowMs() + ahead.aheadMs - Date.parse(lastModified)
}

function refused({ code, message, details }) {
  at('fault').hidden = false
  at('fault-text').textContent = `${message} (${code})`
  const field = queryForm.elements.filter
  const position = details?.position
  const hasPlace = code === 'INVALID_FILTER' && Number.isInteger(position)
  at('fault-place').hidden = !hasPlace
  if (!hasPlace) return
  const wrong = document.createElement('mark')
  const end = Math.min(field.value.length, position + 1)
  wrong.textContent = field.value.slice(position, end) || ' '
  const [before, after] = [field.value.slice(0, position), field.value.slice(end)]
  at('fault-place').replaceChildren(
    before.slice(-CONTEXT_CHARS),
    wrong,
    after.slice(0, CONTEXT_CHARS),
  )
  field.setAttribute('aria-invalid', 'true')
  field.focus()
  field.setSelectionRange(position, end)
}

// --- the connection -----------------------------------------------------------------------

const connection = new LiveConnection(
  {
    open: () => new WebSocket(`${location.origin.replace(/^http/, 'ws')}/ws`),
    after: (run, ms) => setTimeout(run, ms),
    cancel: (timer) => clearTimeout(timer),
    random: Math.random,
  },
  { state: show, changed, refused },
)

const table = new Table({
  heads: at('heads'),
  body: at('rows'),
  rows: () => connection.list.rows,
  drawn: (rows) => {
    const isLive = connection.state === 'live'
    at('list').hidden = rows.length === 0
    at('empty').hidden = rows.length > 0 || !isLive
    at('shown').textContent = String(rows.length)
  },
})

/** The quickest of a few requests is told by the least time on its way. */
async function compareClocks() {
  let best = null
  for (let i = 0; i < CLOCK_TRIES; i++) {
    const sentMs = nowMs()
    const response = await fetch('/health/live', { cache: 'no-store' }).catch(() => null)
    if (response === null) break
    const found = aheadOf(sentMs, response.headers.get('x-request-id'), nowMs())
    if (found !== null && (best === null || found.errorMs < best.errorMs)) best = found
  }
  if (best !== null) ahead = best
}

// --- forms --------------------------------------------------------------------------------

function askWho(message) {
  at('refusal').textContent = message
  signInForm.hidden = false
  queryForm.hidden = true
  signInForm.elements.secret.focus()
}

signInForm.addEventListener('submit', (event) => {
  event.preventDefault()
  void signIn()
})

async function signIn() {
  const given = new FormData(signInForm)
  try {
    at('refusal').textContent = ''
    const token = given.get('token') || (await tokenOf(given.get('client'), given.get('secret')))
    signInForm.elements.secret.value = ''
    signInForm.elements.token.value = ''
    signInForm.hidden = true
    queryForm.hidden = false
    at('numbers').hidden = false
    await compareClocks()
    if (connection.state === 'off' && connection.list.position === null) watch()
    connection.signIn(token)
    queryForm.elements.filter.focus()
  } catch (error) {
    askWho(error.message)
  }
}

function fillQuery() {
  const given = new URLSearchParams(location.hash.slice(1))
  for (const [name, value] of Object.entries(DEFAULTS)) {
    queryForm.elements[name].value = given.get(name) ?? value
  }
}

queryForm.addEventListener('submit', (event) => {
  event.preventDefault()
  watch()
})

function watch() {
  const given = Object.fromEntries(new FormData(queryForm))
  const fields = given.fields.split(',').map((field) => field.trim())
  const asked = fields.filter((field) => field !== '')
  history.replaceState(null, '', `#${new URLSearchParams(given)}`)
  at('fault').hidden = true
  queryForm.elements.filter.removeAttribute('aria-invalid')
  pace = new Pace(nowMs())
  pause(false)
  table.setFields(asked)
  connection.watch({
    edge: 'orders',
    ...(given.filter.trim() === '' ? {} : { filter: given.filter }),
    ...(given.orderBy.trim() === '' ? {} : { orderBy: given.orderBy }),
    limit: Number(given.limit),
    node: { fields: asked },
  })
}

at('hurry').addEventListener('click', () => connection.hurry())
at('pause').addEventListener('click', () => pause(!isPaused))

function pause(wanted) {
  isPaused = wanted
  held = 0
  at('pause').setAttribute('aria-pressed', String(isPaused))
  at('pause').textContent = isPaused ? 'Go on' : 'Pause'
  table.isPaused = isPaused
}

// --- numbers ------------------------------------------------------------------------------

const ms = (value) => `${Math.max(0, Math.round(value)).toLocaleString()} ms`

function showNumbers() {
  const now = nowMs()
  if (held > 0) at('pause').textContent = `Go on (${held} ${held === 1 ? 'change' : 'changes'})`
  at('rate').textContent = pace.rate(now).toLocaleString(undefined, { maximumFractionDigits: 1 })
  const lag = pace.lag(now)
  at('lag').textContent =
    lag === null
      ? '-'
      : `${ms(lag.middleMs)}, at most ${ms(lag.worstMs)} (±${Math.ceil(ahead.errorMs)})`
  at('counts').textContent = `${counts.add} came, ${counts.update} changed, ${counts.remove} went`
}

/** A screen reader hears a sum now and then, not every change. */
function tellNews() {
  const { add, update, remove } = untold
  if (add + update + remove === 0 || isPaused) return
  at('news').textContent = `${add} came, ${update} changed, ${remove} went`
  Object.assign(untold, { add: 0, update: 0, remove: 0 })
}

fillQuery()
setInterval(showNumbers, NUMBERS_MS)
setInterval(tellNews, NEWS_MS)
