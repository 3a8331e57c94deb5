// A browser as far as signing in needs one: it keeps cookies, reads the form of a page, and sends
// it. No scripts, no styles: what curl could do.

export interface Shown {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Where the answer leads; null: it is a page. */
  readonly location: URL | null
}

export class PlainBrowser {
  readonly #cookies = new Map<string, string>()
  shown: Shown | null = null
  #url = ''

  /** Hidden fields of the form that is shown. */
  get hidden(): Record<string, string> {
    const hidden = /<input\s+type="hidden"\s+name="([^"]*)"\s+value="([^"]*)"/g
    const inputs = this.shown!.text.matchAll(hidden)
    return Object.fromEntries(Array.from(inputs, ([, name, value]) => [name!, value!]))
  }

  open(url: string): Promise<Shown> {
    this.#url = url
    return this.#ask({ method: 'GET' })
  }

  /** Sends the form that is shown, with these fields filled in. */
  send(fields: Readonly<Record<string, string>>): Promise<Shown> {
    const action = /<form method="post" action="([^"]*)">/.exec(this.shown!.text)?.[1]
    if (action === undefined) throw new Error(`there is no form:\n${this.shown!.text}`)
    this.#url = new URL(action, this.#url).href
    const body = new URLSearchParams({ ...this.hidden, ...fields })
    return this.#ask({ method: 'POST', body })
  }

  /** Signs in, agrees, and returns where the application is told. */
  async agree(url: string, email: string, password: string): Promise<URL> {
    await this.open(url)
    await this.send({ email, password })
    const { location, status, text } = await this.send({ decision: 'allow' })
    if (location === null) throw new Error(`no redirect: ${status}\n${text}`)
    return location
  }

  async #ask(init: RequestInit): Promise<Shown> {
    const cookie = Array.from(this.#cookies, (pair) => pair.join('=')).join('; ')
    const headers = { Accept: 'text/html', Cookie: cookie }
    const answer = await fetch(this.#url, { ...init, headers, redirect: 'manual' })
    for (const set of answer.headers.getSetCookie()) {
      const [name, value] = set.split(';')[0]!.split('=')
      this.#cookies.set(name!, value!)
    }
    const to = answer.headers.get('location')
    const location = to === null ? null : new URL(to)
    const text = await answer.text()
    return (this.shown = { status: answer.status, headers: answer.headers, text, location })
  }
}
