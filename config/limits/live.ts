// Bounds of sockets (`/ws`) and of what is subscribed over them. Part of LIMITS. Source: CONTRACT
// 1.10.

const KiB = 1024
const MiB = 1024 * KiB

export const LIVE_LIMITS = {
  live: {
    // Sockets at once: past a bound the upgrade gets 429. Of one address, of IPv6 a /64, there are
    // no more than are free: one has a half, the next a quarter.
    socketsMax: 5_000,
    /** Of one session: one more is refused with its `auth` frame. */
    socketsOfSessionMax: 1_500,
    /** Of them those that have not said who they are. */
    strangersMax: 1_000,
    /** The `auth` frame comes within this. */
    authMs: 10_000,
    /** How often a `ping` frame is sent, and how long its `pong` may take. */
    pingMs: 30_000,
    pongMs: 30_000,
    /** How often it is looked who is late, whose token has ended, who doesn't read. */
    sweepMs: 250,
    /** One frame of a client; the first, while nobody knows whose it is; its `requestId`. */
    frameBytesMax: 64 * KiB,
    authFrameBytesMax: 4 * KiB,
    requestIdCharsMax: 128,
    /** Frames of one client in a second, and so many at once. */
    framesPerSecondMax: 50,
    framesAtOnceMax: 200,
    /** Frames that wait while the token of their connection is looked up. */
    framesWaitingMax: 32,
    /** Their characters, of all; of an address no more than are free. */
    framesWaitingCharsMax: 4 * MiB,
    /** Bytes that one socket has not taken yet; of all, a caller's no more than are free. */
    socketBufferBytesMax: 1 * MiB,
    socketBuffersBytesMax: 128 * MiB,
    /** What is on its way to a client that is being closed may take so long. */
    closeMs: 5_000,
    /** So long nothing is pushed because nobody knows whether the token stands; then 1013. */
    unknowableMs: 10_000,
    /** When a role has changed accesses are looked at again, so long before others have a turn. */
    recheckTurnMs: 5,
    /** Plans made again together when the schema has changed. */
    replanTogether: 200,
    /** Clients of a node that stops come back within this, each at a time of its own. */
    comeBackMsMax: 5_000,
    // Messages of GraphQL
    /** How long they are taken before other work has its turn. */
    messagesTurnMs: 5,
    /** Characters that wait for their turn, of one connection and of all callers together. */
    messagesCharsMax: 256 * KiB,
    messagesOfAllCharsMax: 32 * MiB,
    /** Characters of the subscriptions of one connection, their variables included. */
    subscribedCharsMax: 256 * KiB,
    // Events
    /** Subscriptions of one connection; their ids; the paths. */
    subscriptionsMax: 1_000,
    subscriptionsOfPathMax: 16,
    /** Characters that all subscriptions take, a caller's no more than are free. */
    subscriptionsCharsMax: 256 * MiB,
    subscriptionIdCharsMax: 128,
    topicCharsMax: 600,
    /** Past so many paths other members are asked for whole types of actors. */
    watchedPathsMax: 200,
    /** Events that wait for who reads them one by one, and reads that wait for events. */
    eventsUnreadMax: 1_000,
    // Live queries
    /** Of one connection, a session, a member, a caller's no more than are free; their ids. */
    queriesMax: 100,
    queriesOfSessionMax: 10_000,
    queriesOfMemberMax: 20_000,
    queryIdCharsMax: 128,
    /** Nodes that one shows; those kept behind them are half as many, and so many. */
    queryLimitMax: 500,
    queryMarginMin: 10,
    /** Characters of a list; of all with their queries, a caller's no more than are free. */
    queryCharsMax: 8 * MiB,
    queriesCharsMax: 384 * MiB,
    /** What a resume sends of where it was. */
    queryPositionCharsMax: 64 * KiB,
    /** Actors that change while one is read from the index; past it it is read again. */
    queryChangesMax: 10_000,
    /** A read from the index, with the wait for it, of a new query and of one that stands. */
    queryReadMs: 10_000,
    queryReadAgainMs: 30_000,
    /** How often a read that is overtaken is begun anew. */
    queryReadsMax: 5,
    /** Queries that begin before other work has its turn. */
    queriesBeginTogether: 50,
    /** How long lists that are others now are told before other work has its turn. */
    flushTurnMs: 5,
    /** How often clients that could not be told are looked at again. */
    queryRetryMs: 1_000,
    /** Reads of one member at a time. */
    queryReadsAtOnceMax: 8,
    /** Of a client that has not taken so many bytes changes are held back and made one. */
    queryHoldBytes: 64 * KiB,
    /** Actors, and bytes of their entries, that an owner keeps folded for who watches. */
    queryActorsMax: 4_000,
    queryActorsBytesMax: 16 * MiB,
    /** How often an owner looks for an actor's rows, before the feed has the entry come again. */
    queryRowsMs: 20,
    queryRowsTriesMax: 50,
  },
} as const
