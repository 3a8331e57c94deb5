// Rounding over the lines that a split made of one. Each part of them is rounded together with
// those before it, so that the parts add up to what the line was: a split moves no cent. A line
// that was never split doesn't come here. Source: commerce/README.md "Arithmetic".

interface Run {
  before: number
  given: number
}

/** Running sums by what is rounded together. What is invoiced is held first: it doesn't move. */
export class FamilyRounding {
  readonly #runs = new Map<string, Run>()

  /** Counts a part whose amount is fixed. */
  hold(key: string, own: number, given: number): void {
    const run = this.#run(key)
    run.before += own
    run.given += given
  }

  /** The next part's amount: what all so far are rounded to, less what was given. At most `max`. */
  next(
    key: string,
    own: number,
    { round, max }: { readonly round: (sum: number) => number; readonly max: number },
  ): number {
    const run = this.#run(key)
    run.before += own
    const all = round(run.before)
    // Sums beyond exact integers are refused later, as an order's total.
    const exact = Number.isSafeInteger(all) ? all - run.given : round(own)
    const amount = Math.min(Math.max(exact, 0), max)
    run.given += amount
    return amount
  }

  /** What there was no room for so far, at most `max`: it counts as given. */
  rest(key: string, max: number): number {
    const run = this.#run(key)
    const amount = Math.min(Math.max(run.before - run.given, 0), max)
    run.given += amount
    return amount
  }

  #run(key: string): Run {
    let run = this.#runs.get(key)
    if (run === undefined) this.#runs.set(key, (run = { before: 0, given: 0 }))
    return run
  }
}
