// The settings of one process and their defaults; load.ts reads and checks them. Source: CONTRACT 0.

export interface Settings {
  readonly http: {
    readonly host: string
    readonly port: number
    /** Public address in links and logs; made of host and port when not set. */
    readonly baseUrl: string
    /** Paths of PEM files; both or neither. */
    readonly tlsKeyFile: string | null
    readonly tlsCertFile: string | null
  }
  readonly dataDir: string
  readonly storageDriver: 'embedded' | 'cluster'
  /** null: as the store says, 32 for a new one. */
  readonly shards: number | null
  readonly memberId: string
  /** Load the sample orders into an empty embedded store. */
  readonly sample: boolean
  readonly bootstrapSecret: string | null
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  readonly shutdownMs: number
  readonly accessTokenMs: number
  /** `--accept-loss shard:offset` given at start (PROTOCOL 3.16). */
  readonly acceptLoss: readonly { shard: number; offset: number }[]
}
