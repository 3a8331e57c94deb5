// Members of a command of which exactly one is to be sent. Source: commerce/README.md "Commands".

import { invalid } from '../refuse.ts'

export function onlyOne(members: Readonly<Record<string, number | undefined>>): void {
  const names = Object.keys(members)
  const sent = names.filter((name) => members[name] !== undefined)
  if (sent.length === 1) return
  const found = sent.length === 0 ? 'none of them is there' : `${sent.join(' and ')} are there`
  invalid(`exactly one of ${names.join(', ')} is to be sent; ${found}`, sent[1] ?? names[0])
}
