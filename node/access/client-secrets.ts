// Which client a secret shows: a secret of its own that is still good. When each was right last is
// noted, so that administrators see which ones nobody uses any more. Source: CONTRACT 1.8 "Last
// use", 1.11 "Wrong sign-ins".

import type { SystemView } from '../../cluster/actor-system.ts'
import type { NotedActivity } from './activity/noted-activity.ts'
import type { Client } from './client.ts'
import type { Secrets } from './secret.ts'
import { readingsOf } from './sign-ins.ts'
import type { SignIn, SignInAnswer, SignIns } from './sign-ins.ts'

export interface ClientSecretsOptions {
  readonly system: SystemView
  readonly signIns: SignIns
  readonly secrets: Pick<Secrets, 'isKnown'>
  readonly noted: Pick<NotedActivity, 'secretUsed'>
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
}

export class ClientSecrets {
  readonly #options: ClientSecretsOptions

  constructor(options: ClientSecretsOptions) {
    this.#options = options
  }

  /** Also of a client that is suspended, or that there isn't: it takes the same time. */
  async check(sent: Omit<SignIn, 'hashes'>): Promise<SignInAnswer> {
    const { system, signIns, secrets, noted, nowMs } = this.#options
    const { clientId } = sent
    const now = nowMs()
    const kept = system.get<Client>('client', clientId)?.value.secrets ?? []
    const good = kept.filter(({ expiresAt }) => expiresAt === null || Date.parse(expiresAt) > now)
    const answer = await signIns.check({ ...sent, hashes: good.map(({ hash }) => hash) })
    // The check took a while. Who is suspended doesn't sign in, whatever it shows.
    const client = system.get<Client>('client', clientId)?.value
    if (answer !== 'right' || client === undefined || client.suspendedAt !== null) return answer
    const shown = good.find(({ hash }) => secrets.isKnown(readingsOf(sent), [hash]))
    if (shown !== undefined) noted.secretUsed(clientId, shown.secretId)
    return answer
  }
}
