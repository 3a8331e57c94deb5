// Bounds of identities, tokens and sign-ins. Part of LIMITS. Source: CONTRACT 0, 1.11.

const KiB = 1024
const MiB = 1024 * KiB

export const ACCESS_LIMITS = {
  /** Sessions of one identity, personal access tokens aside; past it the oldest goes. */
  sessionsOfIdentityMax: 500,
  patsOfIdentityMax: 100,
  /** What was ended because there were too many is told so often, of so many identities. */
  pushedOutToldMs: 60_000,
  pushedOutKnownMax: 1_000,
  /** A session stays listed so long after its end: members' clocks may differ by as much. */
  sessionKeptMs: 24 * 3_600_000,
  /** Ended ones that leave an identity's list with one sign-in. */
  sessionExpiredTogetherMax: 50,
  /** Sessions that are read side by side for a list. */
  sessionReadsMax: 16,
  /** When a session was used last is written down this often. */
  sessionUsedEveryMs: 3_600_000,
  sessionUsesInFlightMax: 16,
  sessionDescriptionCharsMax: 200,
  /** When an identity was active last, and a secret right last, is written down this often. */
  activityEveryMs: 3_600_000,
  /** One that is further ahead was written by a clock that was wrong: nobody goes by it. */
  activityAheadMs: 24 * 3_600_000,
  /** A member writes so many of them, and so many wait; more are seen again. */
  activityWritesPerSecondMax: 50,
  activityWaitingMax: 10_000,
  /** Of so many a member knows when it was written last: of all, and some secrets. */
  activityKnownMax: 120_000,
  /** They are read side by side for a list, all within this time. */
  activityReadsMax: 16,
  activityReadMs: 1_000,
  /** A personal access token lives so long at most (specification "Limits"): a leap year. */
  patMs: 366 * 24 * 3_600_000,
  /** A code of an authorization (RFC 6749 4.1.2). */
  codeMs: 60_000,
  /** The access token before the newest one: requests that are under way have it. */
  formerTokenMs: 60_000,
  /** What a member was told of a session counts so long; it asks anew after half of it. */
  tokenLeaseMs: 60_000,
  /** Longer than a lease, and what is asked just before its end. */
  revocationKeptMs: 150_000,
  /** What nobody needs any more in the `system` shard goes this often, so many at once. */
  tidyingMs: 30_000,
  tidyingInFlightMax: 16,
  /** Tokens that are being looked up for strangers, and of one network. */
  lookUpsMax: 512,
  lookUpsOfNetworkMax: 64,
  /** Those that wait for such a look-up, in all and of one network, and for how long at most. */
  lookUpsWaitingMax: 2_048,
  lookUpsOfNetworkWaitingMax: 512,
  lookUpWaitMs: 1_000,
  /** Tokens whose identity is at hand. */
  tokenCacheMax: 10_000,
  /** Characters of scopes and entries that are at hand; compiled they take several times that. */
  aclScopesCharsMax: 4 * MiB,
  /** Answers that compiled sets of entries remember, all together. */
  aclAnswersMax: 200_000,
  // Identities
  identityNameCharsMax: 200,
  /** RFC 5321 4.5.3.1.3, less the brackets of a path. */
  emailCharsMax: 254,
  phoneCharsMax: 64,
  /** A redirect URI, a picture, the issuer of an external login. */
  uriCharsMax: 2_048,
  redirectUrisMax: 100,
  rolesOfIdentityMax: 1_000,
  /** Entries of all its roles: compiling so many takes some 50 ms of the thread for requests. */
  entriesOfIdentityMax: 10_000,
  /** Every member has all identities at hand. */
  principalsMax: 100_000,
  clientsMax: 10_000,
  rolesMax: 10_000,
  /** External logins of a principal. */
  loginsMax: 20,
  /** Who somebody is at a provider (OpenID Connect Core 1.0, 2). */
  subjectCharsMax: 255,
  /** Public keys of a client. */
  jwksMax: 20,
  /** Of an RSA key: what checking a signature takes grows with the square of it ... */
  rsaKeyBitsMax: 8_192,
  /** ... and with the bits of its exponent. */
  rsaExponentBytesMax: 4,
  secretsOfClientMax: 10,
  secretTextCharsMax: 200,
  // Passwords; characters as people count them (NIST SP 800-63B asks for at least 64 of room)
  passwordCharsMin: 12,
  passwordCharsMax: 256,
  /** Life of a temporary one. */
  temporaryPasswordMs: 72 * 3_600_000,
  /** A form of the OAuth endpoints. */
  formBytesMax: 64 * KiB,
  // Authorization requests: what they carry goes from page to page in a form.
  oauthStateCharsMax: 4 * KiB,
  oauthScopeCharsMax: 16 * KiB,
  /** From a page to the sending of its form. */
  signInFormMs: 10 * 60_000,
  // What a client signs to show who it is
  assertionCharsMax: 8 * KiB,
  /** Its `jti`. */
  assertionIdCharsMax: 128,
  /** From now to its end at most; what was used is remembered for as long. */
  assertionLifeMsMax: 3_600_000,
  /** By how much others' clocks may differ from ours. */
  clockToleranceMs: 30_000,
  /**
   * Used ones that are remembered, of a client (never more than are free) and of all; more get 429
   * until some end.
   */
  assertionsOfClientMax: 20_000,
  assertionsMax: 50_000,
  // Sign-in by an external provider
  /** From a request to the last byte of its answer. */
  externalRequestMs: 10_000,
  externalAnswerBytesMax: 256 * KiB,
  /** Sign-ins that ask the provider at once; of one network no more than are still free. */
  externalExchangesMax: 16,
  /** Those that wait for it, in all and of one block of addresses, and how long; more get 429. */
  externalWaitingMax: 64,
  externalOfBlockWaitingMax: 48,
  externalWaitMs: 5_000,
  /** What the provider tells of itself is asked for again after so long. */
  externalMetadataMs: 10 * 60_000,
  /** What goes along to the provider and back, in an address. */
  externalStateCharsMax: 6 * KiB,
  /** Ways back from the provider that were taken, and are remembered until their forms end. */
  externalReturnsMax: 10_000,
  /** How often a link to an account is written anew because somebody else was first. */
  externalTriesMax: 3,

  /** A secret, of whatever. */
  secretCharsMax: 1_024,
  /** A bootstrap secret that an operator chooses. */
  secretCharsMin: 16,
  /** Secrets that are being checked at length at once: each keeps a pool thread busy for ~33 ms. */
  secretChecksMax: 2,
  /** Sign-ins that wait for such a check, in all and of one block of addresses; more get 429. */
  secretChecksWaitingMax: 64,
  secretChecksOfBlockWaitingMax: 48,
  /** New passwords that wait to be hashed, in all and of one caller; more get 429. */
  hashesWaitingMax: 64,
  hashesOfCallerWaitingMax: 16,
  /** Secrets known to be right: what was checked at length once is then told at once. */
  secretCacheMax: 10_000,
  /**
   * Wrong sign-ins of one account from one network in this time; from then on each waits (429), the
   * first one this long, each further one twice as long as the one before it, up to a bound.
   */
  signInWrongMax: 10,
  signInWrongMs: 15 * 60_000,
  signInWaitMs: 1_000,
  signInWaitMaxMs: 60_000,
  /** The same of all accounts from one network: so many at once, then one more each ... */
  signInWrongOfNetworkMax: 60,
  signInWrongOfNetworkEveryMs: 1_000,
  /** The same from everywhere: past it secrets are checked one at a time. */
  signInFloodMax: 50,
  signInFloodEveryMs: 100,
  /** Origins of wrong sign-ins that are remembered, of each sort. */
  signInOriginsMax: 20_000,
} as const
