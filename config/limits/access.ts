// Bounds of identities, tokens and sign-ins. Part of LIMITS. Source: CONTRACT 0, 1.11.

const KiB = 1024
const MiB = 1024 * KiB

export const ACCESS_LIMITS = {
  /** Past it expired ones go, then the oldest of whoever has most; nobody's only one (429). */
  sessionsMax: 100_000,
  /** A session counts once more for each so many characters of its scope. */
  sessionScopeChars: 256,
  /** A session is kept so long after its end: members' clocks may differ by as much. */
  sessionKeptMs: 24 * 3_600_000,
  /** Older ones are looked for this often, and so many deleted side by side until none is left. */
  sessionSweepMs: 60_000,
  sessionSweepInFlightMax: 16,
  /** Tokens whose identity is at hand. */
  tokenCacheMax: 10_000,
  /** Characters of scopes whose permissions are at hand; compiled they take several times that. */
  aclScopesCharsMax: 4 * MiB,
  // Identities
  identityNameCharsMax: 200,
  /** RFC 5321 4.5.3.1.3, less the brackets of a path. */
  emailCharsMax: 254,
  phoneCharsMax: 64,
  /** A redirect URI, a picture, the issuer of an external login. */
  uriCharsMax: 2_048,
  redirectUrisMax: 100,
  rolesOfIdentityMax: 1_000,
  /** External logins of a principal. */
  loginsMax: 20,
  /** Public keys of a client. */
  jwksMax: 20,
  secretsOfClientMax: 10,
  secretTextCharsMax: 200,
  /** A form of the OAuth endpoints. */
  formBytesMax: 64 * KiB,
  /** A secret, of whatever. */
  secretCharsMax: 1_024,
  /** A bootstrap secret that an operator chooses. */
  secretCharsMin: 16,
  /** Client secrets that are being checked at once: each keeps a pool thread busy for ~50 ms. */
  secretChecksMax: 2,
  /** Sign-ins that wait for such a check, in all and of one block of addresses; more get 429. */
  secretChecksWaitingMax: 64,
  secretChecksOfBlockWaitingMax: 48,
  /** Secrets known to be right, so that a client that asks often isn't checked at length. */
  secretCacheMax: 1_000,
  /** Wrong sign-ins of one client from one network at once, then one more each ...; others: 429. */
  signInWrongMax: 20,
  signInWrongEveryMs: 3_000,
  /** The same of all clients from one network. */
  signInWrongOfNetworkMax: 60,
  signInWrongOfNetworkEveryMs: 1_000,
  /** The same from everywhere: past it secrets are checked one at a time. */
  signInFloodMax: 50,
  signInFloodEveryMs: 100,
  /** Origins of wrong sign-ins that are remembered, of each sort. */
  signInOriginsMax: 20_000,
} as const
