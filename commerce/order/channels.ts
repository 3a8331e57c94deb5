// What an order needs to know of sales channels. Commands name a channel, an inventory or a
// country; the registry keeps channels. It is asked while a command is checked, never in a replay.
// Source: commerce/README.md "Commands".

export interface Channel {
  readonly currencyCode: string
  /** Inventory keys that deliveries may use; empty: any. */
  readonly inventories: readonly string[]
  /** Country codes that are served; empty: any. */
  readonly countries: readonly string[]
}

export interface ChannelView {
  /** True when any channel is configured; then an order's channel must be one of them. */
  any(): boolean
  /** Throws RequestError 503 UNAVAILABLE where it can't be told now. */
  get(key: string): Channel | null
}

/** No channel is configured: every key is accepted. */
export const NO_CHANNELS: ChannelView = { any: () => false, get: () => null }
