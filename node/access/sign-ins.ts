// Which passwords and client secrets are checked, and when. Who was wrong too often of late isn't
// checked at all. What a digest tells is told at once; a check at length (of a password, or of a
// secret that an operator chose) costs some 33 ms of a pool thread and of a processor: who was
// wrong at all waits for it behind those who were not, and of them one is checked at a time; within
// both lines networks take turns. Who was right from the same network before, and not wrong since,
// waits in a line of its own, where accounts take turns: a flood from more networks than there are
// places keeps out none but who comes from a new one. Right secrets that this process knows are
// never in a line. An unknown client and a wrong secret are the same to all of it. Source: CONTRACT
// 1.11 "Wrong sign-ins".

import { LIMITS } from '../../config/limits.ts'
import { FairQueue } from '../queues/fair-queue.ts'
import { originOf, WrongSignIns, type Origin, type WrongSignInsOptions } from './wrong-sign-ins.ts'

export interface SignIn {
  readonly clientId: string
  readonly secret: string
  /** Another way to read what was sent; absent: there is one alone. */
  readonly orElse?: string
  /** Of the client's secrets; empty where there is no such client. */
  readonly hashes: readonly string[]
  /** Where it comes from; empty when nobody can tell. */
  readonly address: string
}

export type SignInAnswer =
  | 'right'
  | 'wrong'
  /** Nothing was checked: too many wrong ones of this origin, or too many sign-ins at once. */
  | { readonly refused: 'wrong-too-often' | 'busy'; readonly retryAfterMs: number }

/** What was sent, in each way to read it: the first is the likelier one. */
export type Readings = readonly [secret: string] | readonly [secret: string, orElse: string]

/** The part of Secrets that is needed here: whether any of the readings is right. */
export interface SecretCheck {
  /** It was right before: known at once. */
  isKnown(readings: Readings, hashes: readonly string[]): boolean
  /** In microseconds, of no hash as of ten; null: it has to be checked at length. */
  atOnce(readings: Readings, hashes: readonly string[]): boolean | null
  /** At length, of the first reading alone. Takes as long for no hash as for one. */
  matches(readings: Readings, hashes: readonly string[]): Promise<boolean>
}

export interface SignInsOptions {
  readonly secrets: SecretCheck
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
  /** How many wrong ones are borne; absent: as LIMITS.access says. */
  readonly wrong?: WrongSignInsOptions
}

interface Job {
  readonly signIn: SignIn
  readonly origin: Origin
  readonly resolve: (answer: SignInAnswer) => void
  readonly reject: (error: unknown) => void
}

const BUSY: SignInAnswer = { refused: 'busy', retryAfterMs: 1_000 }
/** One of a line is checked after so many of those before it, while there are such. */
const TURN = 4

export class SignIns {
  readonly #secrets: SecretCheck
  readonly #wrong: WrongSignIns
  /** Of origins that were right before, by account. */
  readonly #friends = new FairQueue<Job>(WAITING)
  readonly #others = new FairQueue<Job>(WAITING)
  readonly #suspects = new FairQueue<Job>(WAITING)
  /** Origins of what is being checked. */
  readonly #running: Origin[] = []
  /** Friends that were checked since the last of the rest, and others since the last suspect. */
  #sinceRest = 0
  #sinceSuspect = 0
  /** Pairs that were right, in order of the last time. */
  readonly #right = new Set<string>()

  constructor({ secrets, nowMs, wrong }: SignInsOptions) {
    this.#secrets = secrets
    this.#wrong = new WrongSignIns(nowMs, wrong)
  }

  check(signIn: SignIn): Promise<SignInAnswer> {
    const origin = originOf(signIn.clientId, signIn.address)
    return new Promise((resolve, reject) => {
      const job = { signIn, origin, resolve, reject }
      if (this.#settled(job)) return
      this.#wait(job)
      this.#dispatch()
    })
  }

  /** What can be told without a check at length. */
  #settled({ signIn, origin, resolve }: Job): boolean {
    const { hashes } = signIn
    const readings = readingsOf(signIn)
    const retryAfterMs = this.#wrong.waitMs(origin)
    const isTooLong = readings[0].length > LIMITS.access.secretCharsMax
    if (!isTooLong && this.#secrets.isKnown(readings, hashes)) resolve('right')
    else if (retryAfterMs > 0) resolve({ refused: 'wrong-too-often', retryAfterMs })
    else {
      const isRight = isTooLong ? false : this.#secrets.atOnce(readings, hashes)
      if (isRight === null) return false
      resolve(this.#outcome(isRight, origin))
    }
    return true
  }

  #outcome(isRight: boolean, origin: Origin): SignInAnswer {
    if (isRight) this.#befriend(origin)
    else this.#wrong.count(origin)
    return isRight ? 'right' : 'wrong'
  }

  #wait(job: Job): void {
    const { origin, signIn } = job
    const isFriend = this.#isFriend(origin)
    const rest = this.#isSuspect(origin) ? this.#suspects : this.#others
    const line = isFriend ? this.#friends : rest
    const group = isFriend ? signIn.clientId : origin.block
    line.push({ group, name: origin.pair }, job)?.resolve(BUSY)
  }

  #isFriend(origin: Origin): boolean {
    return this.#right.has(origin.pair) && !this.#wrong.wasWrong(origin)
  }

  #isSuspect(origin: Origin): boolean {
    return !this.#isFriend(origin) && this.#wrong.isSuspect(origin)
  }

  #befriend({ pair }: Origin): void {
    this.#right.delete(pair)
    if (this.#right.size >= LIMITS.access.signInOriginsMax) {
      this.#right.delete(this.#right.keys().next().value!)
    }
    this.#right.add(pair)
  }

  #dispatch(): void {
    for (let job = this.#next(); job !== null; job = this.#next()) {
      // While it waited, others of its origin may have been wrong, or right.
      if (this.#settled(job)) continue
      const isSuspect = this.#isSuspect(job.origin)
      if (isSuspect && !this.#maySuspect) this.#wait(job)
      else this.#run(job, isSuspect)
    }
  }

  #next(): Job | null {
    const atOnce = this.#wrong.isFlooded ? 1 : LIMITS.access.secretChecksMax
    if (this.#running.length >= atOnce) return null
    const isFriendsTurn = this.#sinceRest < TURN
    return isFriendsTurn
      ? (this.#friends.take() ?? this.#nextOfRest())
      : (this.#nextOfRest() ?? this.#friends.take())
  }

  #nextOfRest(): Job | null {
    const isTheirTurn = this.#others.size === 0 || this.#sinceSuspect >= TURN
    const suspect = isTheirTurn && this.#maySuspect ? this.#suspects.take() : null
    return suspect ?? this.#others.take()
  }

  get #maySuspect(): boolean {
    return !this.#running.some((origin) => this.#isSuspect(origin))
  }

  #run({ signIn, origin, resolve, reject }: Job, isSuspect: boolean): void {
    this.#running.push(origin)
    this.#sinceRest = this.#isFriend(origin) ? this.#sinceRest + 1 : 0
    this.#sinceSuspect = isSuspect ? 0 : this.#sinceSuspect + 1
    this.#secrets
      .matches(readingsOf(signIn), signIn.hashes)
      .then((isRight) => resolve(this.#outcome(isRight, origin)), reject)
      .finally(() => {
        this.#running.splice(this.#running.indexOf(origin), 1)
        this.#dispatch()
      })
  }
}

/** Another one that is too long to be a secret is none. */
export function readingsOf({ secret, orElse }: Pick<SignIn, 'secret' | 'orElse'>): Readings {
  const isAnother = orElse !== undefined && orElse.length <= LIMITS.access.secretCharsMax
  return isAnother ? [secret, orElse] : [secret]
}

const WAITING = {
  max: LIMITS.access.secretChecksWaitingMax,
  groupMax: LIMITS.access.secretChecksOfBlockWaitingMax,
}
