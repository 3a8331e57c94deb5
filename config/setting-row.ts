// What is known of one setting.

import type { Kind } from './kinds.ts'

export interface SettingRow<T> {
  /** Key in the settings file: its members, divided by dots. */
  readonly key: string
  readonly what: string
  readonly kind: Kind<T>
  readonly initial: T
  /** Said in the reference instead of `initial`, where the default is made of something else. */
  readonly initially?: string
  /** Never shown in a message; may come out of a file: its name with `_FILE` (CONTRACT 0). */
  readonly secret?: true
}

/** Rows of optional settings need their type said, for the default is null. */
export const row = <T>(setting: SettingRow<T>): SettingRow<T> => setting
