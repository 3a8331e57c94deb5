// setChannelKey: the sales channel of the order; it must be a configured one when there are any.
// Source: specification (known order commands), COMMERCE 5 row 2.

import { command } from '../command.ts'
import { difference } from '../difference.ts'
import type { Draft } from '../draft.ts'
import { invalid } from '../refuse.ts'
import { commandMembers, Key } from '../shapes.ts'

export const setChannelKey = command(
  'setChannelKey',
  commandMembers({ value: Key }),
  (draft, { value }) => {
    checkChannel(draft.channels, value, 'value')
    const changed = difference({ channelKey: draft.state.channelKey }, { channelKey: value })
    if (changed !== null) draft.commit({ t: 'orderChanged', ...changed })
  },
)

/** Refuses a channel that is not there while channels are configured. */
export function checkChannel(channels: Draft['channels'], key: string, member: string): void {
  if (channels.get(key) === null && channels.any()) {
    invalid(`there is no channel ${key}: it is to be one of those under channels/`, member)
  }
}
