// The code of a system error, like `ENOENT`. It stands between what is caught, which may be
// anything, and those who go on after some errors. Plain JavaScript without packages.

/**
 * @param {unknown} error
 * @returns {string} empty where it has none
 */
export function codeOf(error) {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
