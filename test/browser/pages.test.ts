// The pages of a node in a browser, from that node alone: `/live`, where a list of orders moves as
// they come, and `/graphiql`. Source: CONTRACT 1.10 "Page", 1.4.1.

import t from 'tap'
import type { Test } from 'tap'
import type { Browser, Page } from 'puppeteer-core'
import { atOnce } from '../harness/at-once.ts'
import { NodeProcess, SECRET } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { apply, create } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { freePort } from '../../tools/engines/server-process.mjs'
import { openBrowser } from './chromium.ts'

const WAIT_MS = 60_000
const LIMIT = 5
/** Rows that fade away at one time, beside those that are there. */
const LEAVING_MAX = 20

t.setTimeout(280_000)

const found = await openBrowser(t)
const skip = 'skipped' in found ? found.skipped : false
const browser = found as Browser
// A node that comes back has its address again.
const node = new NodeProcess({ KONTOR_HTTP_PORT: String(await freePort()) })
t.teardown(() => node.clear())
if (skip === false) await node.start()

/** A page, and what went wrong in it. It may ask nobody but its node. */
async function open(t: Test, path: string): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage()
  t.teardown(() => page.close())
  page.setDefaultTimeout(WAIT_MS)
  const faults: string[] = []
  const own = `http://127.0.0.1:${node.port}/`
  page.on('pageerror', (error) => void faults.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(own) && !request.url().startsWith('data:')) {
      faults.push(`asks ${request.url()}`)
    }
  })
  await page.goto(`${own}${path}`)
  return { page, faults }
}

async function signIn(page: Page): Promise<void> {
  await page.type('#sign-in [name=client]', '')
  await page.$eval(
    '#sign-in [name=client]',
    (field) => ((field as { value: string }).value = 'bootstrap'),
  )
  await page.type('#sign-in [name=secret]', SECRET)
  await page.keyboard.press('Enter')
}

const state = (page: Page, wanted: string) => page.waitForSelector(`#state[data-state=${wanted}]`)

async function watch(page: Page, query: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(query)) {
    await page.click(`#query [name=${name}]`, { count: 3 })
    await page.keyboard.press('Backspace')
    await page.type(`#query [name=${name}]`, value)
  }
  await page.keyboard.press('Enter')
}

/** Texts of the rows that are there to stay. */
const rows = (page: Page): Promise<string[][]> =>
  page.$$eval('#rows tr:not([data-leaving])', (all) =>
    all.map((row) => Array.from(row.children, ({ textContent }) => textContent ?? '')),
  )

/** Waits until a text of the page is as it should be. */
const told = (page: Page, place: string, pattern: RegExp) =>
  page.waitForFunction(`${pattern}.test(document.querySelector('${place}').textContent)`)

const text = (page: Page, place: string): Promise<string> =>
  page.$eval(place, ({ textContent }) => textContent ?? '')

let written: Answer | undefined

async function order(orderNumber: string, customerNumber: string): Promise<void> {
  const set = { type: 'setCustomerNumber', value: customerNumber }
  written = await node.order('new', [create({ orderNumber }, set)])
  if (written.status !== 200) throw new Error(written.text)
}

async function change(orderNumber: string, customerNumber: string): Promise<void> {
  const set = { type: 'setCustomerNumber', value: customerNumber }
  written = await node.order(orderNumber, [apply(set)])
  if (written.status !== 200) throw new Error(written.text)
}

const query = (beginning: string) => ({
  filter: `customerNumber startsWith '${beginning}'`,
  orderBy: 'customerNumber',
  limit: String(LIMIT),
  fields: 'orderNumber, customerNumber, lastModified',
})

/** Waits until the page shows what the graph has, with what was written last. */
async function isRight(page: Page, beginning: string): Promise<readonly string[]> {
  const { filter, orderBy } = query(beginning)
  const asked = { edge: 'orders', filter, orderBy, limit: LIMIT, node: { fields: ['orderNumber'] } }
  let shown: string[] = []
  await until(
    'the page shows what the graph has',
    async () => {
      // An index that is behind on a busy machine is asked again.
      const answer = await node
        .graph<{ orders: { orderNumber: string }[] }>([asked], written)
        .catch(() => null)
      if (answer === null) return false
      shown = (await rows(page)).map(([number]) => number!)
      return shown.join() === answer.orders.map(({ orderNumber }) => orderNumber).join()
    },
    WAIT_MS,
  )
  return shown
}

t.test('a filtered list moves while orders come, change and go', { skip }, async (t) => {
  const { page, faults } = await open(t, 'live')
  await page.type('[name=secret]', 'not this one at all')
  await page.keyboard.press('Enter')
  await told(page, '#refusal', /./)
  await page.$eval('[name=secret]', (field) => ((field as { value: string }).value = ''))
  t.ok(faults.splice(0).every((fault) => fault.includes('401')))
  await signIn(page)
  await state(page, 'live')
  await watch(page, query('a'))
  await page.waitForSelector('#empty:not([hidden])')
  t.match(await text(page, '#empty'), /No order matches.*create an order/s)
  t.match(page.url(), /#filter=customerNumber/)

  for (const number of ['3', '1', '4', '2']) await order(`A-${number}`, `a${number}`)
  await order('B-1', 'b')
  t.strictSame(await isRight(page, 'a'), ['A-1', 'A-2', 'A-3', 'A-4'])
  await change('A-4', 'a0')
  await change('A-2', 'gone')
  t.strictSame(await isRight(page, 'a'), ['A-4', 'A-1', 'A-3'])
  t.match(await rows(page), [
    ['A-4', 'a0'],
    ['A-1', 'a1'],
    ['A-3', 'a3'],
  ])

  await told(page, '#counts', /^4 came, 1 changed, 1 went$/)
  await told(page, '#lag', /^[\d,]+ ms, at most [\d,]+ ms/)
  t.ok(Number(await text(page, '#rate')) > 0)
  t.ok(Number.parseInt(await text(page, '#lag'), 10) < WAIT_MS)
  t.strictSame(faults, [])
})

t.test('where a filter is wrong', { skip }, async (t) => {
  const { page, faults } = await open(t, 'live')
  await signIn(page)
  await state(page, 'live')
  await watch(page, { filter: 'orderTotal >> 5' })
  await page.waitForSelector('#fault:not([hidden])')
  t.match(await text(page, '#fault-text'), /wrong at position 12.*INVALID_FILTER/)
  t.equal(await text(page, '#fault-place'), 'orderTotal >> 5')
  t.equal(await text(page, '#fault-place mark'), '>')
  const at = 'document.activeElement.name + document.activeElement.selectionStart'
  t.equal(await page.evaluate(at), 'filter12')
  await watch(page, { filter: 'orderTotal > 5' })
  await state(page, 'live')
  t.equal(await page.$('#fault:not([hidden])'), null)
  await watch(page, { fields: 'orderNumbr' })
  await page.waitForSelector('#fault:not([hidden])')
  t.match(await text(page, '#fault-text'), /orderNumber/)
  t.strictSame(faults, [])
})

t.test(
  'a node that is killed: it is seen, and the list is right afterwards',
  { skip },
  async (t) => {
    const { page } = await open(t, 'live')
    await signIn(page)
    await state(page, 'live')
    await watch(page, query('k'))
    for (const number of ['1', '2', '3']) await order(`K-${number}`, `k${number}`)
    await isRight(page, 'k')
    await node.kill()
    await state(page, 'waiting')
    t.match(await text(page, '#said'), /Connection lost, next try in \d/)
    t.equal(await text(page, '#news'), 'Connection lost', 'a screen reader hears it once')
    t.equal((await rows(page)).length, 3, 'what was there is there')
    await node.start()
    await order('K-0', 'k0')
    await change('K-2', 'other')
    await page.click('#hurry').catch(() => undefined)
    await state(page, 'live')
    t.strictSame(await isRight(page, 'k'), ['K-0', 'K-1', 'K-3'])
    await order('K-4', 'k4')
    t.strictSame(await isRight(page, 'k'), ['K-0', 'K-1', 'K-3', 'K-4'], 'and goes on')
  },
)

t.test('what an order holds is text, whatever it says', { skip }, async (t) => {
  const { page, faults } = await open(t, 'live')
  const markup = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>'"&amp;`
  await order('X-1', `x${markup}`)
  await order(`X-<b>2</b>`, `x2`)
  await signIn(page)
  await state(page, 'live')
  await watch(page, query('x'))
  await until('both are shown', async () => (await rows(page)).length === 2, WAIT_MS)
  t.strictSame(
    (await rows(page)).map(([number, customer]) => [number, customer]).sort(),
    [
      ['X-1', `x${markup}`],
      ['X-<b>2</b>', 'x2'],
    ].sort(),
  )
  t.equal(await page.$('#rows img, #rows script, #rows b'), null)
  t.equal(await page.evaluate('window.ran'), undefined)
  t.strictSame(faults, [])
})

t.test('many changes: rows are bounded, and a pause holds them', { skip }, async (t) => {
  const { page, faults } = await open(t, 'live')
  await signIn(page)
  await state(page, 'live')
  await watch(page, query('m'))
  await page.evaluate(`
    window.most = 0
    new MutationObserver(() => {
      window.most = Math.max(window.most, document.getElementById('rows').children.length)
    }).observe(document.getElementById('rows'), { childList: true })
  `)
  const numbers = Array.from({ length: 200 }, (_, i) => i)
  await atOnce(numbers, (i) => order(`M-${i}`, `m${999 - i}`))
  await until('the last one is shown', async () => (await rows(page))[0]?.[0] === 'M-199', WAIT_MS)
  await isRight(page, 'm')
  const most = Number(await page.evaluate('window.most'))
  t.ok(most >= LIMIT && most <= LIMIT + LEAVING_MAX, `${most} rows`)

  await page.click('#pause')
  const before = await rows(page)
  await change('M-0', 'm0')
  await told(page, '#pause', /^Go on \(\d+ changes?\)$/)
  t.strictSame(await rows(page), before)
  await page.click('#pause')
  t.equal((await isRight(page, 'm'))[0], 'M-0')
  t.strictSame(faults, [])
})

t.test('light and dark', { skip }, async (t) => {
  const { page } = await open(t, 'live')
  const paper = () => page.evaluate('getComputedStyle(document.body).backgroundColor')
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }])
  t.equal(await paper(), 'rgb(255, 255, 255)')
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }])
  t.equal(await paper(), 'rgb(20, 24, 30)')
})

t.test('GraphiQL runs a query, and shows a subscription as it changes', { skip }, async (t) => {
  const { page, faults } = await open(t, 'graphiql')
  await signIn(page)
  await page.waitForSelector('.graphiql-execute-button')
  await page.click('.graphiql-execute-button')
  await told(page, '.result-window', /"__typename": "Query"/)
  const subscription = `subscription {
    orders(filter: "customerNumber == 'q'") { kind node { orderNumber } }
  }`
  await page.evaluate(
    `document.querySelector('.graphiql-query-editor .CodeMirror').CodeMirror
      .setValue(${JSON.stringify(subscription)})`,
  )
  await page.click('.graphiql-execute-button')
  await told(page, '.result-window', /"kind": "created"/)
  await order('Q-0', 'q')
  await told(page, '.result-window', /"kind": "added"[^]*"orderNumber": "Q-0"/)
  await page.click('.graphiql-execute-button')
  await until('the subscription ends', async () => (await node.metric('kontor_live_queries')) === 0)
  t.strictSame(faults, [])
})
