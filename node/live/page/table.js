// The rows of the page: what stands in the list, moved and lit up as it changes. Texts only become
// text; rows and columns are bounded, whatever comes.

/* global document, matchMedia, requestAnimationFrame */

const COLUMNS_MAX = 30
const CELL_CHARS_MAX = 300
/** Rows that fade away at one time; beyond that they go at once. */
const LEAVING_MAX = 20
/** Above so many rows none is seen to move: measuring them would cost more than it tells. */
const MOVING_MAX = 120
const ENTER_MS = 500
const FLASH_MS = 900
const MOVE_MS = 250
const LEAVE_MS = 350

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/
const times = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const calm = matchMedia('(prefers-reduced-motion: reduce)')

export class Table {
  #heads
  #body
  /** @type {readonly string[]} */
  #fields = []
  /** Rows of the document by their keys, with the version that they show. */
  #shown = new Map()
  #leaving = 0
  #isDue = false
  #isPaused = false
  #rows = () => []
  #drawn

  /** `rows`: those to show; `drawn`: called after each time. */
  constructor({ heads, body, rows, drawn }) {
    this.#heads = heads
    this.#body = body
    this.#rows = rows
    this.#drawn = drawn
  }

  setFields(fields) {
    this.#fields = fields.slice(0, COLUMNS_MAX)
    this.#heads.replaceChildren(...this.#fields.map((field) => cell('th', field, { scope: 'col' })))
    this.#body.replaceChildren()
    this.#shown.clear()
    this.#leaving = 0
    this.due()
  }

  set isPaused(isPaused) {
    this.#isPaused = isPaused
    this.due()
  }

  /** Something has changed; however much it was, it is drawn once. */
  due() {
    if (this.#isDue || this.#isPaused) return
    this.#isDue = true
    requestAnimationFrame(() => {
      this.#isDue = false
      if (!this.#isPaused) this.#draw()
    })
  }

  #draw() {
    const rows = this.#rows()
    const isFirst = this.#shown.size === 0
    const from = rows.length <= MOVING_MAX && !calm.matches ? this.#places() : new Map()
    const stays = new Set(rows.map(({ key }) => key))
    for (const [key, one] of this.#shown) if (!stays.has(key)) this.#leave(key, one.element)
    let at = this.#next(this.#body.firstElementChild)
    for (const row of rows) {
      const element = this.#rowOf(row, isFirst)
      if (element === at) at = this.#next(at.nextElementSibling)
      else this.#body.insertBefore(element, at)
    }
    for (const [key, top] of from) {
      const element = this.#shown.get(key)?.element
      if (element !== undefined) move(element, top - element.offsetTop)
    }
    this.#drawn(rows)
  }

  #places() {
    return new Map(Array.from(this.#shown, ([key, { element }]) => [key, element.offsetTop]))
  }

  /** This one, or the next behind it that isn't fading away. */
  #next(element) {
    let at = element
    while (at !== null && at.dataset.leaving !== undefined) at = at.nextElementSibling
    return at
  }

  #rowOf({ key, version, node }, isFirst) {
    const known = this.#shown.get(key)
    if (known !== undefined && known.version === version) return known.element
    const element = known?.element ?? document.createElement('tr')
    const cells = this.#fields.map((field) => valueCell(node, field))
    for (const [i, { className }] of cells.entries()) {
      if (className === 'number') this.#heads.children[i].className = className
    }
    element.replaceChildren(...cells)
    this.#shown.set(key, { element, version })
    if (known !== undefined) light(element, '--flash', FLASH_MS)
    else if (!isFirst) light(element, '--enter', ENTER_MS)
    return element
  }

  #leave(key, element) {
    this.#shown.delete(key)
    if (calm.matches || this.#leaving >= LEAVING_MAX) {
      element.remove()
      return
    }
    this.#leaving++
    element.dataset.leaving = ''
    element.setAttribute('aria-hidden', 'true')
    const fading = element.animate([{ opacity: 0.7 }, { opacity: 0 }], LEAVE_MS)
    const gone = () => {
      if (element.isConnected) this.#leaving--
      element.remove()
    }
    fading.finished.then(gone, gone)
  }
}

function move(element, by) {
  if (by !== 0)
    element.animate([{ transform: `translateY(${by}px)` }, { transform: 'none' }], MOVE_MS)
}

function light(element, colour, ms) {
  element.animate([{ backgroundColor: `var(${colour})` }, { backgroundColor: 'transparent' }], ms)
}

/** `invoiceAddress.name` lies in an object, `dynamic->'x'` in `dynamic`. */
function read(node, field) {
  const parts = field.replaceAll(/\s*->\s*(['"])(.*?)\1/g, '.$2').split('.')
  const member = (value, part) =>
    typeof value === 'object' && value !== null && Object.hasOwn(value, part) ? value[part] : null
  return parts.reduce(member, node)
}

function valueCell(node, field) {
  const value = read(node, field)
  if (typeof value === 'number') return cell('td', String(value), { class: 'number' })
  if (value === null || value === undefined) return cell('td', '')
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (TIME.test(text)) return cell('td', times.format(new Date(text)), { title: text })
  return cell('td', text)
}

function cell(name, text, attributes = {}) {
  const element = document.createElement(name)
  element.textContent = text.length > CELL_CHARS_MAX ? `${text.slice(0, CELL_CHARS_MAX)}…` : text
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  return element
}
