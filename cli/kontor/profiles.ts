// Profiles: which node a command speaks to, and as whom. They are kept in one file that its owner
// alone can read. A refresh token works once (CONTRACT 1.11), so two commands at once must not use
// the same one: whoever changes the file holds a lock beside it.

import { randomUUID } from 'node:crypto'
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EXIT, Failure } from './failure.ts'
import type { World } from './world.ts'

export interface Profile {
  readonly url: string
  readonly clientId: string
  /** Of an application that signs in by itself; else a person has signed in. */
  readonly clientSecret?: string
  /** Of such an application: ACEs that were asked for at its sign-in, and are at each renewal. */
  readonly scope?: string
  readonly accessToken: string
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number
  readonly refreshToken?: string
}

interface Kept {
  readonly current: string | null
  readonly profiles: Readonly<Record<string, Profile>>
}

export const NAME = /^[\w.-]{1,64}$/
/** A lock that stands so long was left by a command that died: a renewal takes 30 s at most. */
const LOCK_STALE_MS = 35_000
const LOCK_WAIT_MS = 60_000
const LOCK_POLL_MS = 50
const NONE: Kept = { current: null, profiles: {} }

export class Profiles {
  readonly #path: string
  readonly #world: World

  constructor(world: World) {
    const { env, home } = world
    this.#world = world
    const base =
      env['KONTOR_CONFIG_DIR'] ?? join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'kontor')
    this.#path = join(base, 'profiles.json')
  }

  get path(): string {
    return this.#path
  }

  async all(): Promise<Kept> {
    let text: string
    try {
      text = await readFile(this.#path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return NONE
      throw new Failure(`${this.#path} can't be read: ${(error as Error).message}`)
    }
    try {
      const { current, profiles } = JSON.parse(text) as Kept
      return { current: current ?? null, profiles: Object.assign(Object.create(null), profiles) }
    } catch {
      throw new Failure(`${this.#path} is damaged; delete it and sign in again`)
    }
  }

  /** The one of this name, or the one in use. */
  async find(
    name: string | undefined,
  ): Promise<{ readonly name: string; readonly profile: Profile }> {
    const { current, profiles } = await this.all()
    const wanted = name ?? this.#world.env['KONTOR_PROFILE'] ?? current
    const profile = wanted === null ? undefined : profiles[wanted]
    if (wanted !== null && profile !== undefined) return { name: wanted, profile }
    const what = wanted === null ? 'nobody is signed in' : `there is no profile "${wanted}"`
    throw new Failure(`${what}: kontor login`, EXIT.notSignedIn)
  }

  /** Keeps it, and makes it the one in use where none is or `isCurrent`. */
  put(name: string, profile: Profile, isCurrent: boolean): Promise<void> {
    return this.#locked(async () => {
      const { current, profiles } = await this.all()
      const next = isCurrent || current === null ? name : current
      await this.#write({ current: next, profiles: { ...profiles, [name]: profile } })
    })
  }

  use(name: string): Promise<void> {
    return this.#locked(async () => {
      const kept = await this.all()
      if (kept.profiles[name] === undefined) {
        throw new Failure(`there is no profile "${name}"`, EXIT.notFound)
      }
      await this.#write({ ...kept, current: name })
    })
  }

  remove(name: string): Promise<void> {
    return this.#locked(async () => {
      const { current, profiles } = await this.all()
      const { [name]: _gone, ...left } = profiles
      await this.#write({ current: current === name ? null : current, profiles: left })
    })
  }

  /**
   * The profile after `renew`, which gets it as it is now: another command may have renewed it
   * while this one waited.
   */
  renewed(name: string, renew: (profile: Profile) => Promise<Profile>): Promise<Profile> {
    return this.#locked(async () => {
      const kept = await this.all()
      const before = kept.profiles[name]
      if (before === undefined) throw new Failure('signed out meanwhile', EXIT.notSignedIn)
      const after = await renew(before)
      if (after !== before) {
        await this.#write({ ...kept, profiles: { ...kept.profiles, [name]: after } })
      }
      return after
    })
  }

  async #locked<T>(run: () => Promise<T>): Promise<T> {
    const lock = `${this.#path}.lock`
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    await this.#take(lock)
    try {
      return await run()
    } finally {
      await rm(lock, { force: true })
    }
  }

  /** Goes by no time of the file: its clock may be another one. */
  async #take(lock: string): Promise<void> {
    const { nowMs } = this.#world
    const untilMs = nowMs() + LOCK_WAIT_MS
    let seen = { holder: '', sinceMs: nowMs() }
    while (!(await isMade(lock))) {
      const holder = await readFile(lock, 'utf8').catch(() => '')
      if (holder !== seen.holder) seen = { holder, sinceMs: nowMs() }
      if (isDead(holder) || nowMs() - seen.sinceMs > LOCK_STALE_MS) {
        await rm(lock, { force: true })
        continue
      }
      if (nowMs() > untilMs) throw new Failure(`another command holds ${lock}`)
      await delay(LOCK_POLL_MS)
    }
  }

  /** Written aside and renamed: whoever reads the file reads all of it. */
  async #write(kept: Kept): Promise<void> {
    const aside = `${this.#path}.new`
    const file = await open(aside, 'w', 0o600)
    try {
      await chmod(aside, 0o600)
      await file.writeFile(`${JSON.stringify(kept, null, 2)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(aside, this.#path)
  }
}

/** False: another command has it. What is written there tells one holder from the next. */
async function isMade(lock: string): Promise<boolean> {
  try {
    const file = await open(lock, 'wx', 0o600)
    await file.writeFile(`${process.pid} ${randomUUID()} ${hostname()}`)
    await file.close()
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new Failure(`${lock} can't be made: ${(error as Error).message}`)
  }
}

/** A command of this machine that has ended; of another machine nobody can tell. */
function isDead(holder: string): boolean {
  const [pid = '', , host] = holder.split(' ')
  if (host !== hostname()) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
