// Which setting a person has to look at when an engine can't be used: a certificate that isn't
// trusted, a password that is wrong, TLS where there is none.

export type EngineName = 'REDIS' | 'CASSANDRA' | 'ELASTICSEARCH'

/** The settings that say how an engine is reached. */
const ADDRESS = {
  REDIS: 'KONTOR_REDIS_URL: redis:// or rediss://',
  CASSANDRA: 'KONTOR_CASSANDRA_TLS',
  ELASTICSEARCH: 'KONTOR_ELASTICSEARCH_URL: http:// or https://',
} as const

const NAMES = {
  REDIS: 'KONTOR_REDIS_URL',
  CASSANDRA: 'KONTOR_CASSANDRA_CONTACT_POINTS',
  ELASTICSEARCH: 'KONTOR_ELASTICSEARCH_URL',
} as const

const LOGIN = {
  REDIS: 'KONTOR_REDIS_USERNAME and KONTOR_REDIS_PASSWORD',
  CASSANDRA: 'KONTOR_CASSANDRA_USERNAME and KONTOR_CASSANDRA_PASSWORD',
  ELASTICSEARCH:
    'KONTOR_ELASTICSEARCH_USERNAME and KONTOR_ELASTICSEARCH_PASSWORD, or ' +
    'KONTOR_ELASTICSEARCH_API_KEY',
} as const

/**
 * Of X509_verify_cert_error_string(3), by message: not every driver hands on what Node.js calls it.
 */
const UNTRUSTED = new RegExp(
  [
    'self.signed certificate',
    'unable to verify the first cert',
    'unable to get (local )?issuer cert',
    'certificate signature failure',
    'certificate not trusted',
    'invalid CA cert',
  ].join('|'),
  'i',
)

/** What can follow a driver's message, with a space before it; '' when no setting is to blame. */
export function faultOf(engine: EngineName, error: unknown): string {
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string }
  if (UNTRUSTED.test(message)) {
    return ` (its certificate is signed by no authority of KONTOR_${engine}_TLS_CA_FILE)`
  }
  if (/does not match certificate's altnames/.test(message)) {
    return ` (its certificate is for another name than ${NAMES[engine]} has)`
  }
  if (/certificate has expired/.test(message)) return ' (its certificate has expired)'
  if (/wrong.version.number|packet.length.too.long/i.test(`${String(code)} ${message}`)) {
    return ` (it doesn't speak TLS there; ${ADDRESS[engine]})`
  }
  if (/alert.*(certificate|handshake|unknown ca)|certificate.required/i.test(message)) {
    return (
      ' (it wants a certificate of this member that it trusts: ' +
      `KONTOR_${engine}_TLS_CERT_FILE and KONTOR_${engine}_TLS_KEY_FILE)`
    )
  }
  return ''
}

/** The same for a login that is missing or refused. */
export function loginFault(engine: EngineName): string {
  return ` (${LOGIN[engine]})`
}

/** The same for an engine that was reached and has not said a word. */
export function silentFault(engine: EngineName): string {
  return ` (it said nothing; is TLS what it speaks? ${ADDRESS[engine]})`
}
