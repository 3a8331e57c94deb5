// setChannelKey: the sales channel of the order; it must be a configured one when there are any
// (channel-rules.ts, at the end of the batch). Source: specification "Actor", commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Key } from '../shapes.ts'

export const setChannelKey = command(
  'setChannelKey',
  commandMembers({ value: Key }),
  (draft, { value }) => {
    const changed = difference({ channelKey: draft.state.channelKey }, { channelKey: value })
    if (changed !== null) draft.commit({ t: 'orderChanged', ...changed })
  },
)
