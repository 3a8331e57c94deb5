// Every actor type of the platform, in one table. The runtime needs the whole of them, and so do
// the graph's worker threads, which fold and project the same actors. A type that is missing here
// is parked by the projector.

import type { ChannelView } from '../commerce/order/channels.ts'
import type { Completion } from '../commerce/order/completion.ts'
import { orderBehaviour } from '../commerce/order/order.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import { accessBehaviours } from './access/access.ts'
import { refusalToDefine } from './graph/custom/definition-access.ts'
import { registryBehaviour } from './registry/entry.ts'

/** The actor types. The workers call it without arguments: they only fold and project. */
export function behaviours(channels?: ChannelView, completion?: Completion): Behaviour[] {
  const [access, order] = [accessBehaviours(), orderBehaviour(channels, completion)]
  const nodes = [...access, order].flatMap(({ nodeTypes }) => nodeTypes)
  const registry = registryBehaviour((caller, entry) => refusalToDefine(caller, entry, nodes))
  return [...access, registry, order]
}
