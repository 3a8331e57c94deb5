// The numbers that anybody may see who reaches the port of HTTP: how the process is, and whether it
// keeps up. They are what GET /metrics shows without a token. What tells how much is ordered, and
// in which shard, is not among them; a new number isn't either, unless it is put here. Source:
// CONTRACT 0 "Operations".

export const PUBLIC_METRICS: ReadonlySet<string> = new Set([
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'process_anonymous_memory_bytes',
  'nodejs_heap_used_bytes',
  'nodejs_external_memory_bytes',
  'nodejs_eventloop_lag_p99_seconds',
  'kontor_http_connections',
  'kontor_http_requests_in_flight',
  'kontor_index_lag_entries',
  'kontor_index_lag_seconds',
  'kontor_index_ready',
  'kontor_index_throttle_seconds',
  'kontor_index_parked_actors',
  'kontor_cluster_members',
  'kontor_cluster_shards_unowned',
  'kontor_lease_held',
  'kontor_wire_up',
  'kontor_metrics_sources_failed',
])
