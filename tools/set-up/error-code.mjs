// The code of a system error, like `ENOENT`, of what is caught, which may be anything. Plain
// JavaScript without packages.

/**
 * @param {unknown} error
 * @returns {string} empty where it has none
 */
export function codeOf(error) {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
