// The pages of signing in: sign in, change a temporary password, agree, and what to say when
// nothing can be done. Forms work without scripts; an error is said above the form and tied to its
// fields. Source: CONTRACT 1.11 "Pages", WCAG 2.2 3.3.1.

import type { OperationResponse } from '../../../http/operation.ts'
import { LIMITS } from '../../../../config/limits.ts'
import { formTargets, html, pageAnswer } from './layout.ts'
import type { Markup } from './layout.ts'
import { scopeInWords } from './scope-words.ts'

/** What every page with a form needs. */
export interface FormPage {
  /** Path that forms are sent to, behind the public address. */
  readonly action: string
  /** Sealed (`FormSeal`). */
  readonly form: string
  readonly clientName: string
  readonly redirectUri: string
  /** The provider by which people may sign in as well. */
  readonly external: { readonly label: string; readonly issuer: string } | null
  readonly headers: Readonly<Record<string, string>>
  /** What was wrong with the form that was sent; null: nothing was sent. */
  readonly error: PageError | null
}

export interface PageError {
  readonly status: number
  readonly message: string
  /** Fields that it is about. */
  readonly fields: readonly string[]
  /** Nothing is checked before that. */
  readonly retryAfterSeconds?: number
}

const { emailCharsMax, passwordCharsMax } = LIMITS.access

export function signInPage(page: FormPage, email: string): OperationResponse {
  return formAnswer(
    page,
    'Sign in',
    (form) =>
      html`<h1>Sign in</h1>
        <p>to go on to <strong>${page.clientName}</strong></p>
        ${form(
          html`<label for="email">E-mail address</label>
            <input
              id="email"
              name="email"
              type="text"
              inputmode="email"
              autocomplete="username"
              autocapitalize="none"
              spellcheck="false"
              maxlength="${emailCharsMax}"
              value="${email}"
              required${marksOf(page, 'email')}
            />
            ${passwordField(page, PASSWORD)}
            <button>Sign in</button>`,
        )}${
          page.external === null
            ? null
            : formOf(
                page,
                html`<button class="second" name="external" value="yes">
                  Sign in with ${page.external.label}
                </button>`,
              )
        }`,
  )
}

export function passwordPage(page: FormPage, email: string): OperationResponse {
  const least = LIMITS.access.passwordCharsMin
  return formAnswer(
    page,
    'Choose a password',
    (form) =>
      html`<h1>Choose a password</h1>
        <p>
          The one that you signed in with is temporary. Choose your own, then you go on to
          <strong>${page.clientName}</strong>.
        </p>
        ${form(
          html`<label for="email">E-mail address</label>
            <input
              id="email"
              name="email"
              type="text"
              autocomplete="username"
              value="${email}"
              readonly
            />
            ${passwordField(page, { ...PASSWORD, label: 'Temporary password' })}
            ${passwordField(page, NEW_PASSWORD)}
            <p class="hint" id="rule">
              At least ${least} characters; a few words in a row do well.
            </p>
            ${passwordField(page, AGAIN)}
            <button>Change password</button>`,
        )}`,
  )
}

export interface ConsentPage extends FormPage {
  readonly email: string
  /** As it is asked for; null: all that there is to have. */
  readonly scope: string | null
}

export function consentPage(page: ConsentPage): OperationResponse {
  const { clientName, email, redirectUri } = page
  return formAnswer(
    page,
    `Let ${clientName} in?`,
    (form) =>
      html`<h1>Let ${clientName} in?</h1>
        <p class="soft">You are signed in as <strong>${email}</strong>.</p>
        <p>${clientName} will be able to do this in your name:</p>
        <ul>
          ${scopeInWords(page.scope).map(({ words, ace }) => itemOf(words, ace))}
        </ul>
        <p class="soft">
          Never more than you may do yourself. You go on to ${placeOf(redirectUri)}.
        </p>
        ${form(
          html`<button name="decision" value="allow">Allow</button>
            <button class="second" name="decision" value="deny">Refuse</button>
            <p>
              <button class="plain" name="decision" value="another">
                Sign in as somebody else
              </button>
            </p>`,
        )}`,
  )
}

function itemOf(words: string, ace: string | null): Markup {
  return html`<li>${words}${ace === null ? null : html` <code>${ace}</code>`}</li>`
}

/** Where an answer goes, as a person can check it: the host, or the scheme of an application. */
function placeOf(uri: string): string {
  const { protocol, host } = new URL(uri)
  if (protocol !== 'http:' && protocol !== 'https:')
    return `an application on this device (${protocol})`
  return /^(127\.0\.0\.1|\[::1\])(:|$)/.test(host) ? `a program on this computer (${host})` : host
}

/** Nothing can be done here, and nobody else is told. */
export function refusedPage(
  reason: string,
  status = 400,
  headers: Readonly<Record<string, string>> = {},
): OperationResponse {
  const isForNow = status === 429 || status >= 500
  const title = isForNow ? 'Not now' : 'This link does not work'
  return pageAnswer({
    status,
    title,
    headers,
    content: html`<h1>${title}</h1>
      <p class="error" role="alert">${sentence(reason)}</p>
      <p class="soft">
        ${
          isForNow
            ? 'Wait as long, then go back to the page before this one and send it again.'
            : 'Go back to the application that sent you here and begin anew.'
        }
        If it happens again, tell those who run it.
      </p>`,
  })
}

function formAnswer(
  page: FormPage,
  title: string,
  content: (form: (fields: Markup) => Markup) => Markup,
): OperationResponse {
  const { error, external, redirectUri } = page
  const form = (fields: Markup): Markup =>
    html`${
      error === null
        ? null
        : html`<p class="error" id="error" role="alert">${sentence(error.message)}</p>`
    }
    ${formOf(page, fields)}`
  return pageAnswer({
    status: error?.status ?? 200,
    title: error === null ? title : `Error: ${title}`,
    targets: formTargets(redirectUri, ...(external === null ? [] : [external.issuer])),
    headers: page.headers,
    content: content(form),
  })
}

function formOf({ form, action }: FormPage, fields: Markup): Markup {
  return html`<form method="post" action="${action}">
    <input type="hidden" name="form" value="${form}" />
    ${fields}
  </form>`
}

interface PasswordField {
  readonly id: string
  readonly name: string
  readonly label: string
  readonly autocomplete: 'current-password' | 'new-password'
  /** Id of what says more about it. */
  readonly hint?: string
}

const PASSWORD: PasswordField = {
  ...{ id: 'password', name: 'password', label: 'Password', autocomplete: 'current-password' },
}
const NEW_PASSWORD: PasswordField = {
  ...{ id: 'new-password', name: 'new_password', label: 'New password' },
  ...{ autocomplete: 'new-password', hint: 'rule' },
}
const AGAIN: PasswordField = {
  ...{ id: 'again', name: 'again', label: 'New password once more' },
  autocomplete: 'new-password',
}

function passwordField(page: FormPage, { id, name, label, autocomplete, hint }: PasswordField) {
  return html`<label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${name}"
      type="password"
      autocomplete="${autocomplete}"
      maxlength="${passwordCharsMax}"
      required${marksOf(page, name, hint)}
    />`
}

/** Attributes of a field: what says more about it, and that the error is about it. */
function marksOf({ error }: FormPage, field: string, hint?: string): Markup | null {
  const isWrong = error?.fields.includes(field) === true
  const more = [...(hint === undefined ? [] : [hint]), ...(isWrong ? ['error'] : [])].join(' ')
  if (more === '') return null
  const described = html` aria-describedby="${more}"`
  return isWrong ? html` aria-invalid="true"${described}` : described
}

function sentence(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`
}
