// The settings of external sign-in: which of them belong together, and what the parts get. Source:
// CONTRACT 1.11 "External sign-in".

import { OIDC_TABLE } from './oidc-table.ts'
import type { OidcSettings } from './settings.ts'
import type { SettingName, SettingValues } from './table.ts'

type OidcName = keyof typeof OIDC_TABLE

/** A role that nobody gets by signing in: it may do everything. */
const OWNER_ROLE = 'system:owner'

/** Adds what can't be right together. */
export function checkOidc(
  values: SettingValues,
  given: ReadonlyMap<SettingName, unknown>,
  problems: string[],
): void {
  if (values.KONTOR_OIDC_ISSUER === null) {
    const isSet = (name: OidcName): boolean => String(values[name]) !== String(initialOf(name))
    const first = (Object.keys(OIDC_TABLE) as OidcName[]).find(isSet)
    // One that is given and wrong has been told.
    if (first !== undefined && !given.has('KONTOR_OIDC_ISSUER')) {
      problems.push(`KONTOR_OIDC_ISSUER: not set, but ${first} is; an external sign-in needs both`)
    }
    return
  }
  if (values.KONTOR_OIDC_CLIENT_ID === null && !given.has('KONTOR_OIDC_CLIENT_ID')) {
    problems.push('KONTOR_OIDC_CLIENT_ID: not set, but KONTOR_OIDC_ISSUER is; give both or neither')
  }
  const { KONTOR_OIDC_ROLES: roles, KONTOR_OIDC_FIRST_SIGN_IN: first } = values
  for (const name of ['KONTOR_OIDC_ROLES', 'KONTOR_OIDC_DOMAINS'] as const) {
    if (values[name].length > 0 && first !== 'make') {
      problems.push(`${name}: is set, but KONTOR_OIDC_FIRST_SIGN_IN is not make`)
    }
  }
  const wrong = roles.find((role) => role === OWNER_ROLE)
  if (wrong !== undefined) {
    problems.push(`KONTOR_OIDC_ROLES: ${wrong} is given by an owner, never by signing in`)
  }
}

const initialOf = (name: OidcName): unknown => OIDC_TABLE[name].initial

/** null: nobody signs in so. */
export function oidcSettings(values: SettingValues): OidcSettings | null {
  const { KONTOR_OIDC_ISSUER: issuer, KONTOR_OIDC_CLIENT_ID: clientId } = values
  if (issuer === null || clientId === null) return null
  return {
    ...{ issuer, clientId },
    clientSecret: values.KONTOR_OIDC_CLIENT_SECRET,
    scopes: values.KONTOR_OIDC_SCOPES,
    label: values.KONTOR_OIDC_LABEL ?? new URL(issuer).host,
    findBy: values.KONTOR_OIDC_FIND_BY,
    firstSignIn: values.KONTOR_OIDC_FIRST_SIGN_IN,
    domains: values.KONTOR_OIDC_DOMAINS.map((domain) => domain.toLowerCase()),
    roles: values.KONTOR_OIDC_ROLES,
  }
}
