// The metrics page: what is counted is what is shown, in the format that Prometheus reads.

import t from 'tap'
import { Histogram, Metrics } from './metrics.ts'

t.test('counters and gauges by name and labels', (t) => {
  const metrics = new Metrics()
  const counter = metrics.counter('a_total', 'As.', { kind: 'x' })
  counter.add()
  counter.add(2)
  metrics.counter('a_total', 'As.', { kind: 'y' })
  metrics.gauge('b', 'Bs.').set(-1.5)
  t.equal(metrics.counter('a_total', 'As.', { kind: 'x' }), counter, 'asked again: the same one')
  t.equal(
    metrics.text(),
    '# HELP a_total As.\n# TYPE a_total counter\na_total{kind="x"} 3\na_total{kind="y"} 0\n' +
      '# HELP b Bs.\n# TYPE b gauge\nb -1.5\n',
  )
  t.throws(() => metrics.gauge('a_total', 'As.'), /counter already/)
  t.throws(() => metrics.gauge('a-b', ''), /not a metric's name/)
  t.end()
})

t.test('a histogram counts up to its bounds', (t) => {
  const metrics = new Metrics()
  const seconds = metrics.histogram('s', { help: 'S.', bounds: [0.1, 1] }, { route: 'r' })
  for (const value of [0.05, 0.1, 0.5, 7]) seconds.observe(value)
  t.match(
    metrics.text(),
    's_bucket{route="r",le="0.1"} 2\ns_bucket{route="r",le="1"} 3\n' +
      's_bucket{route="r",le="+Inf"} 4\ns_sum{route="r"} 7.65\ns_count{route="r"} 4\n',
  )
  t.throws(() => new Histogram([1, 1]), /ascend/)
  t.end()
})

t.test('collected samples join their family; a source that throws costs only itself', (t) => {
  const metrics = new Metrics()
  let value = 1
  metrics.collect(() => [
    { name: 'lag', help: 'Lag\nin \\ms', type: 'gauge', labels: { shard: '1' }, value: value++ },
    { name: 'lag', help: '', type: 'gauge', labels: { shard: 'a"b\\c\n' }, value: Infinity },
  ])
  metrics.collect(function* () {
    yield { name: 'lost', help: '', type: 'gauge', value: 1 }
    throw new Error('no numbers')
  })
  t.equal(
    metrics.text(),
    '# HELP lag Lag\\nin \\\\ms\n# TYPE lag gauge\nlag{shard="1"} 1\n' +
      'lag{shard="a\\"b\\\\c\\n"} +Inf\n' +
      '# HELP kontor_metrics_sources_failed Parts of this member that could not report their numbers.\n' +
      '# TYPE kontor_metrics_sources_failed gauge\nkontor_metrics_sources_failed 1\n',
  )
  t.match(metrics.text(), 'lag{shard="1"} 2', 'asked at every scrape')
  t.end()
})
