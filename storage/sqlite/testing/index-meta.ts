// Changes what an index file says of itself, for tests of what a start makes of it.

import { DatabaseSync } from 'node:sqlite'

/** `value` null: it says nothing of that. */
export function setIndexMeta(file: string, name: string, value: string | null): void {
  const db = new DatabaseSync(file)
  db.prepare('DELETE FROM meta WHERE name = ?').run(name)
  if (value !== null) db.prepare('INSERT INTO meta VALUES (?, ?)').run(name, value)
  db.close()
}
