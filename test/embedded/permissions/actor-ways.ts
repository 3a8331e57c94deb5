// Ways to an order that ask its actor.

import { message, refusalIn, type Way } from './stage.ts'

export const ACTOR_WAYS: readonly Way[] = [
  ...['', '?preview'].map((suffix): Way => ({
    name: `query message${suffix}`,
    unseen: 'FORBIDDEN_NODE',
    look: async (node, orderId, token) => {
      const path = `/resources/actors/order/${orderId}${suffix}`
      const { text } = await node.ask(path, token, [{ type: 'query', body: message }])
      return refusalIn(text) ?? (text.includes('"orderId"') ? 'shown' : 'absent')
    },
  })),
  {
    name: 'a preview that changes what it is seen by',
    unseen: 'FORBIDDEN_NODE',
    look: async (node, orderId, token) => {
      const commands = [
        { type: 'setCustomerNumber', value: 'north' },
        { type: 'setDynamicFields', fields: { shop: 'n' } },
      ]
      const { text } = await node.ask(`/resources/actors/order/${orderId}?preview`, token, [
        { type: 'applyCommands', body: { commands } },
        { type: 'query', body: message },
      ])
      return refusalIn(text) ?? (text.includes('"orderId"') ? 'shown' : 'absent')
    },
  },
  {
    name: 'query in bulk',
    unseen: 'FORBIDDEN_NODE',
    look: async (node, orderId, token) => {
      const line = JSON.stringify({ id: orderId, messages: [{ type: 'query', body: message }] })
      const path = '/resources/actors/order'
      const { text } = await node.ask(path, token, `${line}\n`, 'application/x-ndjson')
      return refusalIn(text) ?? (text.includes('"orderId"') ? 'shown' : 'absent')
    },
  },
]
