// The settings of sign-in by an external OpenID Connect provider. Part of the table of settings.
// Source: CONTRACT 1.11 "External sign-in".

import { matching, oneOf, plainText, ISSUER, several } from './kinds.ts'
import { LIMITS } from './limits.ts'
import { row } from './setting-row.ts'

export const OIDC_TABLE = {
  KONTOR_OIDC_ISSUER: row<string | null>({
    key: 'oidc.issuer',
    what:
      'OpenID Connect provider by which people may sign in, exactly as it calls itself. It knows ' +
      'this service by the redirect URI <base URL>/oauth/external/callback.',
    kind: ISSUER,
    initial: null,
  }),
  KONTOR_OIDC_CLIENT_ID: row<string | null>({
    key: 'oidc.clientId',
    what: 'Who this service is to the provider.',
    kind: plainText(1_000),
    initial: null,
  }),
  KONTOR_OIDC_CLIENT_SECRET: row<string | null>({
    key: 'oidc.clientSecret',
    what: 'Its secret at the provider.',
    kind: plainText(1_000),
    initial: null,
    initially: 'not set: PKCE alone shows that a code is its own',
    secret: true,
  }),
  KONTOR_OIDC_SCOPES: row({
    key: 'oidc.scopes',
    what: 'What the provider is asked for.',
    kind: matching(
      'scopes with single spaces between, openid among them',
      /^(?=(.* )?openid( |$))[!#-[\]-~]+( [!#-[\]-~]+)*$/,
    ),
    initial: 'openid email profile',
  }),
  KONTOR_OIDC_LABEL: row<string | null>({
    key: 'oidc.label',
    what: 'What the provider is called on the page: "Sign in with ...".',
    kind: plainText(60),
    initial: null,
    initially: "the issuer's host",
  }),
  KONTOR_OIDC_FIND_BY: row<'subject' | 'email'>({
    key: 'oidc.findBy',
    what:
      'Who an account at the provider is: the principal that has it among its logins (subject), ' +
      'or, where nobody has, also the one with its verified e-mail address, which then has it.',
    kind: oneOf('subject', 'email'),
    initial: 'subject',
  }),
  KONTOR_OIDC_FIRST_SIGN_IN: row<'refuse' | 'make'>({
    key: 'oidc.firstSignIn',
    what: 'An account that is nobody here is refused, or a principal is made for it.',
    kind: oneOf('refuse', 'make'),
    initial: 'refuse',
  }),
  KONTOR_OIDC_DOMAINS: row<readonly string[]>({
    key: 'oidc.domains',
    what:
      'Domains of the e-mail addresses with which a principal is made so, each exactly. Of a ' +
      'provider where anybody gets an account without them anybody is made.',
    kind: several(
      matching('a domain, such as shop.example', /^(?=.{1,253}$)[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/),
    ),
    initial: [],
    initially: 'any domain',
  }),
  KONTOR_OIDC_ROLES: row<readonly string[]>({
    key: 'oidc.roles',
    what: 'Roles of principals that are made so.',
    kind: several(
      matching(
        `a role, <namespace>:<capability>, of at most ${LIMITS.commerce.keyCharsMax} characters`,
        new RegExp(`^(?=.{1,${LIMITS.commerce.keyCharsMax}}$)[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)+$`),
      ),
    ),
    initial: [],
  }),
} as const
