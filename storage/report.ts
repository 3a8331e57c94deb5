// Where a check of a store says what it finds.

/** One line for each finding. */
export type Report = (line: string) => void
