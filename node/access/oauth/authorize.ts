// The authorization endpoint: a person signs in, sees what an application asks for, and agrees or
// not; then the application gets a code. Pages for browsers, without scripts. Source: RFC 6749 3.1,
// 4.1, RFC 9207, RFC 9700 4, CONTRACT 1.11 "Pages".
//
//   request -> sign-in -> consent -> code          deny, too wide a scope: error to the application
//                 |          ^
//                 +-> password (a temporary one is changed)
//                 +-> the external provider, and back

import { hash } from 'node:crypto'
import type { SystemView } from '../../../cluster/actor-system.ts'
import { LIMITS } from '../../../config/limits.ts'
import { parseScope } from '../../../protocol/ace.ts'
import type { Ace } from '../../../protocol/ace.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { OperationRequest, OperationResponse } from '../../http/operation.ts'
import type { Ready } from '../authenticate.ts'
import type { Client } from '../client.ts'
import { lacksAttribute } from '../permission.ts'
import type { SessionGrants } from '../sessions/grants.ts'
import { readAuthorizeRequest } from './authorize-request.ts'
import type { AuthorizeErrorCode, AuthorizeRequest, Refused } from './authorize-request.ts'
import type { ExternalSignIn } from './external-sign-in.ts'
import type { FormSeal, FormState, SignedIn } from './form-seal.ts'
import { SECRET_HEADERS } from './pages/layout.ts'
import { consentPage, passwordPage, refusedPage, signInPage } from './pages/pages.ts'
import type { FormPage, PageError } from './pages/pages.ts'
import type { People, Person, SignedInAnswer } from './people.ts'
import { isRegistered, redirectTo } from './redirects.ts'
import { OAuthError, describable, readForm } from './request.ts'
import type { Form } from './request.ts'

export interface AuthorizeOptions {
  readonly system: SystemView
  readonly ready: Ready
  readonly people: Pick<People, 'find' | 'check' | 'changePassword' | 'aclOf'>
  readonly sessions: Pick<SessionGrants, 'authorize'>
  readonly seal: FormSeal
  /** null: nobody signs in by an external provider. */
  readonly external: Pick<ExternalSignIn, 'leave' | 'return' | 'shown'> | null
  /** Public address, without a slash at its end; the issuer of what is answered. */
  readonly baseUrl: string
}

/** What a page is for, and whose browser it is in. */
interface Shown {
  readonly state: FormState
  readonly client: Client
  readonly cookie: string
}

/** A form that was sent, with what it belongs to. */
interface Sent extends Shown {
  readonly request: OperationRequest
  readonly form: Form
  readonly address: string
}

const UNKNOWN = 'the application is not known here any more'
const GIVEN_UP = 'the application has given up the address that the answer would go to'
const GONE = 'this page is too old, or was opened in another browser, or cookies are switched off'

export class Authorize {
  readonly #options: AuthorizeOptions

  constructor(options: AuthorizeOptions) {
    this.#options = options
  }

  /** An application leads a person here. */
  async open(request: OperationRequest): Promise<OperationResponse> {
    if (!(await this.#options.ready())) return later()
    return this.#begin(request, request.query)
  }

  /** A form of a page; without one of ours it is a request like another (RFC 6749 3.1). */
  async send(request: OperationRequest): Promise<OperationResponse> {
    // Read before anything is awaited: it is gone with the caller.
    const { address } = request
    if (!(await this.#options.ready())) return later()
    try {
      const parameters = request.body as URLSearchParams
      if (!parameters.has('form')) return this.#begin(request, parameters)
      return await this.#take(request, address)
    } catch (error) {
      if (error instanceof OAuthError) return refusedPage(error.message, error.answer.status)
      if (error instanceof RequestError) return later()
      throw error
    }
  }

  /** The external provider leads a person back here. */
  async return(request: OperationRequest): Promise<OperationResponse> {
    const { address, query, requestId: trace } = request
    const { ready, external, seal } = this.#options
    if (!(await ready())) return later()
    if (external === null) return refusedPage('nobody signs in by an external provider here')
    const cookie = seal.cookieOf(request.header('cookie'))
    if (cookie === null) return refusedPage(GONE)
    try {
      const returned = await external.return(query, { cookie, address, trace })
      if (returned.is === 'gone') return refusedPage(GONE)
      const { state } = returned
      const client = this.#clientOf(state)
      if (client === null) return refusedPage(UNKNOWN)
      if (!isRegistered(state.request.redirectUri, client)) return refusedPage(GIVEN_UP)
      const shown = { state, client, cookie }
      if (returned.is === 'person') return this.#askConsent(shown, returned)
      return signInPage(this.#page(shown, returned.error), '')
    } catch (error) {
      if (error instanceof RequestError) return later()
      throw error
    }
  }

  #begin(request: OperationRequest, parameters: URLSearchParams): OperationResponse {
    const read = readAuthorizeRequest(parameters, this.#options.system)
    if (read.is === 'hopeless') return refusedPage(read.reason)
    if (read.is === 'refused') return this.#refuse(read.refused)
    const { seal } = this.#options
    // Another tab of this browser may have a form under way: it goes by the same cookie.
    const cookie = seal.cookieOf(request.header('cookie')) ?? seal.makeCookie()
    const state: FormState = { step: 'sign-in', request: read.request }
    return signInPage(this.#page({ state, client: read.client, cookie }), '')
  }

  async #take(request: OperationRequest, address: string): Promise<OperationResponse> {
    const { seal } = this.#options
    const form = readForm(request)
    const cookie = seal.cookieOf(request.header('cookie'))
    const site = request.header('sec-fetch-site')
    const isElsewhere = site !== '' && site !== 'same-origin' && site !== 'none'
    const state = cookie === null || isElsewhere ? null : seal.open(form.get('form') ?? '', cookie)
    if (state === null || cookie === null) return refusedPage(GONE)
    const client = this.#clientOf(state)
    if (client === null) return refusedPage(UNKNOWN)
    // It may have been taken away because somebody else has it now.
    if (!isRegistered(state.request.redirectUri, client)) return refusedPage(GIVEN_UP)
    const sent = { request, form, state, client, cookie, address }
    switch (state.step) {
      case 'consent':
        return this.#decide(sent)
      case 'password':
        return this.#changePassword(sent)
      case 'sign-in':
        return form.has('external') ? this.#leave(sent) : this.#signIn(sent)
      case 'external':
        return refusedPage(GONE)
    }
  }

  /** null: it is not there any more, or suspended. */
  #clientOf({ request }: FormState): Client | null {
    const client = this.#options.system.get<Client>('client', request.clientId)?.value
    return client === undefined || client.suspendedAt !== null ? null : client
  }

  async #leave(sent: Sent): Promise<OperationResponse> {
    const { external } = this.#options
    if (external === null) return refusedPage(GONE)
    const left = await external.leave(sent.state, sent)
    if ('error' in left) return signInPage(this.#page(sent, left.error), '')
    const cookie = { 'Set-Cookie': this.#options.seal.setCookie(sent.cookie) }
    return { status: 303, headers: { ...SECRET_HEADERS, ...cookie, Location: left.location } }
  }

  async #signIn(sent: Sent): Promise<OperationResponse> {
    const email = sent.form.get('email') ?? ''
    const password = sent.form.get('password') ?? ''
    const again = (error: PageError): OperationResponse =>
      signInPage(this.#page(sent, error), email)
    if (email === '' || password === '') {
      const fields = [...(email === '' ? ['email'] : []), ...(password === '' ? ['password'] : [])]
      return again({ status: 400, fields, message: 'enter your e-mail address and your password' })
    }
    const answer = await this.#options.people.check({ email, password, address: sent.address })
    if (answer.is !== 'right') return again(wrongPassword(answer))
    if (!answer.isTemporary) return this.#askConsent(sent, answer)
    const state: FormState = { ...sent.state, step: 'password', who: whoOf(answer) }
    return passwordPage(this.#page({ ...sent, state }), answer.person.email)
  }

  async #changePassword(sent: Sent): Promise<OperationResponse> {
    const { people } = this.#options
    const person = this.#whoStill(sent.state.who)
    if (person === null) return refusedPage(GONE)
    const again = (error: PageError): OperationResponse =>
      passwordPage(this.#page(sent, error), person.email)
    const [current, next, repeated] = ['password', 'new_password', 'again'].map(
      (name) => sent.form.get(name) ?? '',
    ) as [string, string, string]
    if (current === '' || next === '') {
      const fields = [
        ...(current === '' ? ['password'] : []),
        ...(next === '' ? ['new_password'] : []),
      ]
      return again({ status: 400, fields, message: 'enter the temporary password and a new one' })
    }
    if (next !== repeated) {
      const fields = ['new_password', 'again']
      return again({ status: 400, fields, message: 'the new passwords are not the same' })
    }
    const { address, request } = sent
    const trace = request.requestId
    const answer = await people.changePassword({ id: person.id, current, next, address, trace })
    if (answer.is === 'weak') {
      return again({ status: 422, fields: ['new_password'], message: answer.reason })
    }
    return answer.is === 'right' ? this.#askConsent(sent, answer) : again(wrongPassword(answer))
  }

  /** The person is known; what the application wants must be theirs to give. */
  #askConsent(
    sent: Shown,
    { person }: { readonly person: Person },
    error: PageError | null = null,
  ): OperationResponse {
    const refused = this.#scopeFault(sent, person)
    if (refused !== null) return refused
    const { scope, digest } = shownOf(sent)
    const who = whoOf({ person })
    const state: FormState = { ...sent.state, step: 'consent', who, shown: digest }
    return consentPage({ ...this.#page({ ...sent, state }, error), email: person.email, scope })
  }

  #scopeFault({ state, client }: Shown, person: Person): OperationResponse | null {
    const { scope } = state.request
    if ((shownOf({ state, client }).scope ?? '').length > LIMITS.access.oauthScopeCharsMax) {
      const what = 'the application is registered for more than one page can say; it has to name a'
      return this.#answerError(state.request, 'invalid_scope', `${what} scope`)
    }
    const scopes = parseScope(scope ?? '')
    const acl = this.#options.people.aclOf(person.id, client)
    const isTooWide = (ace: Ace): boolean =>
      acl?.coversAce(ace) !== true || lacksAttribute(acl, ace)
    const wider = scopes.ok ? scopes.aces.find(isTooWide) : undefined
    if (wider === undefined) return null
    const what = "a part of the scope is not this person's, or not this application's, to have"
    return this.#answerError(state.request, 'invalid_scope', what)
  }

  async #decide(sent: Sent): Promise<OperationResponse> {
    const { request } = sent.state
    const decision = sent.form.get('decision')
    if (decision === 'another') {
      const state: FormState = { step: 'sign-in', request }
      return signInPage(this.#page({ ...sent, state }), '')
    }
    if (decision !== 'allow') return this.#answerError(request, 'access_denied', 'it was refused')
    const person = this.#whoStill(sent.state.who)
    if (person === null) return refusedPage(GONE)
    const refused = this.#scopeFault(sent, person)
    if (refused !== null) return refused
    const { scope, digest: said } = shownOf(sent)
    if (sent.state.shown !== said) return this.#askConsent(sent, { person }, CHANGED)
    const code = await this.#makeCode({ ...request, scope }, person, sent.request.requestId)
    return this.#redirect(request.redirectUri, { code, state: request.state })
  }

  /** Of the scope that the page has shown: what the client is registered for later is not in it. */
  async #makeCode(request: AuthorizeRequest, person: Person, trace: string): Promise<string> {
    const { clientId, scope, challenge, redirectNamed, redirectUri } = request
    const agreed = {
      identity: person.id,
      kind: 'principal',
      clientId,
      scope,
      challenge,
      // What was left out is left out of the token request as well (RFC 6749 4.1.3).
      redirectUri: redirectNamed ? redirectUri : '',
    } as const
    return (await this.#options.sessions.authorize(agreed, { trace })).code
  }

  /** Null: suspended, deleted, or signed out by a new password since. */
  #whoStill(who: SignedIn | undefined): Person | null {
    if (who === undefined) return null
    const person = this.#options.people.find(who.principalId)
    return person !== null && person.epoch === who.epoch ? person : null
  }

  #page({ state, client, cookie }: Shown, error: PageError | null = null): FormPage {
    const { seal, external, baseUrl } = this.#options
    return {
      // Of the root another program may be: what is sent there holds a password.
      action: new URL(`${baseUrl}/oauth/authorize`).pathname,
      form: seal.seal(state, cookie),
      clientName: client.properties.name,
      redirectUri: state.request.redirectUri,
      external: external?.shown ?? null,
      headers: { 'Set-Cookie': seal.setCookie(cookie), ...retryAfter(error) },
      error,
    }
  }

  #answerError(
    { redirectUri, state }: AuthorizeRequest,
    error: AuthorizeErrorCode,
    description: string,
  ): OperationResponse {
    return this.#refuse({ error, description, redirectUri, state })
  }

  #refuse({ error, description, redirectUri, state }: Refused): OperationResponse {
    const answer = { error, error_description: describable(description), state }
    return this.#redirect(redirectUri, answer)
  }

  /** 303: a browser goes on with GET, and takes no form along (RFC 9700 4.12). */
  #redirect(uri: string, answer: Readonly<Record<string, string | null>>): OperationResponse {
    const location = redirectTo(uri, { ...answer, iss: this.#options.baseUrl })
    return { status: 303, headers: { ...SECRET_HEADERS, Location: location } }
  }
}

const CHANGED: PageError = {
  status: 409,
  fields: [],
  message: 'the application has changed since this page was made; look at it again',
}

/**
 * What the page of consent says of the application, and a digest of it: what is agreed to. Where no
 * scope is asked for it is all that the client is registered for at this moment (RFC 6749 3.3); of
 * one that is registered for no scopes, all that the person may do, whatever that comes to be.
 */
function shownOf({ state, client }: Pick<Sent, 'state' | 'client'>): {
  readonly scope: string | null
  readonly digest: string
} {
  const { name, scopes } = client.properties
  const scope = state.request.scope ?? scopes?.join(' ') ?? null
  return { scope, digest: hash('sha256', JSON.stringify([name, scope]), 'base64url') }
}

function whoOf({ person }: { readonly person: Person }): SignedIn {
  return { principalId: person.id, epoch: person.epoch }
}

/** The same whether there is such an account or not. */
function wrongPassword(answer: Exclude<SignedInAnswer, { is: 'right' }>): PageError {
  const fields = ['email', 'password']
  if (answer.is === 'wrong') {
    return { status: 400, fields, message: 'the e-mail address or the password is not right' }
  }
  const seconds = Math.max(1, Math.ceil(answer.retryAfterMs / 1_000))
  const why = answer.isBusy
    ? 'too many people sign in at once'
    : 'there were too many wrong sign-ins'
  const message = `${why}; nothing was checked. Try again in ${seconds} s`
  return { status: 429, fields: [], message, retryAfterSeconds: seconds }
}

function retryAfter(error: PageError | null): Readonly<Record<string, string>> {
  const seconds = error?.retryAfterSeconds
  return seconds === undefined ? {} : { 'Retry-After': String(seconds) }
}

function later(): OperationResponse {
  const reason = 'nobody can be signed in at the moment; try again in a moment'
  return refusedPage(reason, 503, { 'Retry-After': '1' })
}
