// Failures as the caller of a command sees them: a message and an exit code, which stands in the
// help. Scripts go by the codes.

export const EXIT = {
  done: 0,
  failed: 1,
  wrongArguments: 2,
  notSignedIn: 3,
  forbidden: 4,
  notFound: 5,
  conflict: 6,
  unavailable: 7,
} as const

export const EXIT_HELP = `
Exit codes:
  0  done
  1  the node refused it, or something failed
  2  wrong arguments
  3  not signed in, or the sign-in is over: kontor login
  4  signed in, but not allowed
  5  there is no such thing
  6  it was changed meanwhile, or is there already
  7  the node is away or busy: try again
`

/** Ends the command: the message is shown, the code is the process's. */
export class Failure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message)
    this.exitCode = exitCode
  }
}

const BY_STATUS: Readonly<Record<number, number>> = {
  401: EXIT.notSignedIn,
  403: EXIT.forbidden,
  404: EXIT.notFound,
  409: EXIT.conflict,
  412: EXIT.conflict,
  429: EXIT.unavailable,
  503: EXIT.unavailable,
  504: EXIT.unavailable,
}

/** What an HTTP answer that is no success comes to. `body`: its text. */
export function failureOf(status: number, body: string): Failure {
  return new Failure(
    messageIn(body) ?? `the node answered ${status}`,
    BY_STATUS[status] ?? EXIT.failed,
  )
}

function messageIn(body: string): string | null {
  try {
    const { errors } = JSON.parse(body) as {
      errors?: readonly { readonly code?: string; readonly message?: string }[]
    }
    const first = errors?.[0]
    return first?.message === undefined ? null : `${first.message} (${first.code ?? 'no code'})`
  } catch {
    return null
  }
}
