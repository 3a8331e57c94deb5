// The node's /metrics (Prometheus text), as far as the bench reads it: index lag and groups.

export const LAG_ENTRIES = 'kontor_index_lag_entries'
export const LAG_SECONDS = 'kontor_index_lag_seconds'
export const ENTRIES = 'kontor_commit_entries_total'
export const QUERIES = 'kontor_graph_queries_total'
export const COMMITS = 'kontor_commits_total'

/** Sums of the series by metric name, labels put together. */
export type Metrics = ReadonlyMap<string, number>

const TIMEOUT_MS = 5_000

export function parseMetrics(text: string): Metrics {
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})? (\S+)/.exec(line)
    if (match === null) continue
    const value = Number(match[2])
    if (!Number.isNaN(value)) sums.set(match[1]!, (sums.get(match[1]!) ?? 0) + value)
  }
  return sums
}

/** Null when the node shows none to who has this token. */
export async function fetchMetrics(url: string, token: string): Promise<Metrics | null> {
  try {
    const response = await fetch(`${url}/metrics`, {
      headers: { Authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    return response.ok ? parseMetrics(await response.text()) : null
  } catch {
    return null
  }
}
