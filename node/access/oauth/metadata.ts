// What the authorization server tells of itself. Source: RFC 8414 2, RFC 7636 5, RFC 9207 3, RFC
// 7662, CONTRACT 1.11.

import { PUBLIC_KEY_ALGORITHMS } from '../client-keys.ts'

const SECRETS = ['client_secret_basic', 'client_secret_post']
const METHODS = [...SECRETS, 'private_key_jwt']

export function metadata(baseUrl: string): Record<string, unknown> {
  return {
    issuer: baseUrl,
    authorization_endpoint: `${baseUrl}/oauth/authorize`,
    token_endpoint: `${baseUrl}/oauth/token`,
    token_endpoint_auth_methods_supported: [...METHODS, 'none'],
    token_endpoint_auth_signing_alg_values_supported: PUBLIC_KEY_ALGORITHMS,
    revocation_endpoint: `${baseUrl}/oauth/revoke`,
    revocation_endpoint_auth_methods_supported: [...METHODS, 'none'],
    revocation_endpoint_auth_signing_alg_values_supported: PUBLIC_KEY_ALGORITHMS,
    introspection_endpoint: `${baseUrl}/oauth/introspect`,
    introspection_endpoint_auth_methods_supported: METHODS,
    introspection_endpoint_auth_signing_alg_values_supported: PUBLIC_KEY_ALGORITHMS,
    grant_types_supported: ['authorization_code', 'client_credentials', 'refresh_token'],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${baseUrl}/openapi.json`,
  }
}

const WELL_KNOWN = '/.well-known/oauth-authorization-server'

/** Of an issuer with a path it stands between host and path as well (RFC 8414 3.1). */
export function metadataPaths(baseUrl: string): readonly string[] {
  const { pathname } = new URL(baseUrl)
  return /^\/[\w.~/-]+$/.test(pathname) ? [WELL_KNOWN, `${WELL_KNOWN}${pathname}`] : [WELL_KNOWN]
}
