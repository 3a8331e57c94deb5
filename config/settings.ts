// The settings of one process, as its parts get them. Source: CONTRACT 0.

export interface Settings {
  readonly http: {
    readonly host: string
    readonly port: number
    /** Public address in links and logs; made of host and port when not set. */
    readonly baseUrl: string
    /** Paths of PEM files; both or neither. */
    readonly tlsKeyFile: string | null
    readonly tlsCertFile: string | null
    /** Connections of callers at once; further ones are closed unheard. */
    readonly connectionsMax: number
    /** Proxies whose PROXY preamble says where a caller is: addresses and networks. */
    readonly proxyFrom: readonly string[]
    /** Proxies whose X-Forwarded-For does: addresses and networks. */
    readonly forwardedFrom: readonly string[]
    /** Origins whose pages may read answers: `https://shop.example`. */
    readonly corsOrigins: readonly string[]
  }
  readonly rates: Rates
  /** Where the metrics are all that is served; port null: on the port of everything else. */
  readonly metrics: { readonly host: string; readonly port: number | null }
  readonly dataDir: string
  readonly storageDriver: 'embedded' | 'cluster'
  /** null: as the store says, 32 for a new one. */
  readonly shards: number | null
  readonly memberId: string
  /** Load the sample orders into an empty embedded store; false for every member of a cluster. */
  readonly sample: boolean
  readonly bootstrapSecret: string | null
  /** Fields that filters, semi-joins and counts of the graph may look at (CONTRACT 1.4). */
  readonly graphFilterFields: 'any' | 'granted'
  /** Threads that read the embedded graph index, at least 2; null: by the machine's cores. */
  readonly graphReaders: number | null
  /** What encrypts secret registry values: base64 of 32 bytes each; key null: nothing does. */
  readonly secrets: { readonly key: string | null; readonly oldKeys: readonly string[] }
  /** If a batch that leaves nothing to do completes its order (commerce/README.md "Machines"). */
  readonly orderCompletion: 'manual' | 'automatic'
  readonly logLevel: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** `auto`: text where standard output is a terminal. */
  readonly logFormat: 'auto' | 'text' | 'json'
  readonly shutdownMs: number
  /** Of that time: what a load balancer gets to notice, milliseconds. */
  readonly shutdownNoticeMs: number
  readonly accessTokenMs: number
  readonly refreshTokenMs: number
  /** `--accept-loss shard:offset` given at start (PROTOCOL 3.16). */
  readonly acceptLoss: readonly { readonly shard: number; readonly offset: number }[]
  /** `smtp://` or `smtps://` address of the mail server; null: none. */
  readonly smtpUrl: string | null
  /** null: nobody signs in by an external provider. */
  readonly oidc: OidcSettings | null
  readonly cluster: ClusterSettings
}

/** Sign-in by an external OpenID Connect provider. */
export interface OidcSettings {
  /** As the provider calls itself; https, or http of this machine. */
  readonly issuer: string
  readonly clientId: string
  /** null: a client without one, with PKCE alone. */
  readonly clientSecret: string | null
  /** With spaces between; `openid` is one of them. */
  readonly scopes: string
  /** What it is called on the page. */
  readonly label: string
  /** Whether a verified e-mail address finds a principal that has no login there yet. */
  readonly findBy: 'subject' | 'email'
  readonly firstSignIn: 'refuse' | 'make'
  /** Of e-mail addresses with which principals are made, in lower case; empty: any. */
  readonly domains: readonly string[]
  /** Of principals that are made by signing in. */
  readonly roles: readonly string[]
}

/** How often somebody may ask, in a minute; 0: as often as they like. */
export interface Rates {
  /** Requests of one client or principal. */
  readonly client: number
  /** Sign-ins and token requests from one address. */
  readonly signInAddress: number
  /** Token requests of one client that shows who it is. */
  readonly signInClient: number
  /** Wrong secrets and passwords for one account from one address in `wrongSignInsMs`. */
  readonly wrongSignIns: number
  readonly wrongSignInsMs: number
}

/** Where the engines of a cluster are; looked at only with the storage driver `cluster`. */
export interface ClusterSettings {
  /** `redis://` or `rediss://` addresses; empty: not set. */
  readonly redisUrls: readonly string[]
  readonly redis: {
    /** username null: Redis's user `default`. */
    readonly credentials: { readonly username: string | null; readonly password: string } | null
    /** null: no address is `rediss://`. */
    readonly tls: EngineTls | null
  }
  readonly cassandra: {
    /** `host:port`; empty: not set. */
    readonly contactPoints: readonly string[]
    readonly keyspace: string
    readonly datacenter: string | null
    /** Copies of each row in a keyspace that is made; null: min(3, nodes of the data centre). */
    readonly replication: number | null
    /** Level of conditional writes; null: as the store says, LOCAL_SERIAL for a new one. */
    readonly serial: 'LOCAL_SERIAL' | 'SERIAL' | null
    /** null: Cassandra asks for none. */
    readonly credentials: { readonly username: string; readonly password: string } | null
    /** null: in the clear. */
    readonly tls: EngineTls | null
  }
  readonly elasticsearch: {
    /** `http://` or `https://` addresses; empty: not set. */
    readonly urls: readonly string[]
    /** Put before every index name. */
    readonly prefix: string
    /** null: it asks for none, or they are in the addresses. */
    readonly auth:
      | { readonly username: string; readonly password: string }
      | { readonly apiKey: string }
      | null
    /** null: no address is `https://`. */
    readonly tls: EngineTls | null
  }
}

/** How an engine is known, and a member to it: PEM texts. */
export interface EngineTls {
  /** null: the authorities that Node.js knows of. */
  readonly ca: string | null
  /** Both or neither. */
  readonly cert: string | null
  readonly key: string | null
}
