// What pages of this node have in common: a token for a client and its secret, of the node itself.
// Source: RFC 6749 4.4, CONTRACT 1.11.

/**
 * Rejects with what the node says of it.
 * @param {string} client
 * @param {string} secret
 * @returns {Promise<string>}
 */
export async function tokenOf(client, secret) {
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client,
    client_secret: secret,
  })
  const response = await fetch('/oauth/token', { method: 'POST', body })
  const answer = /** @type {Record<string, string>} */ (await response.json())
  if (!response.ok)
    throw new Error(answer['error_description'] ?? answer['error'] ?? `${response.status}`)
  return answer['access_token'] ?? ''
}
