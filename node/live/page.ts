// `/live`: a page that shows a list of orders as it changes, over `/ws` as any client has it. It is
// served by this node alone, and without a token it shows nothing of the business. Source: CONTRACT
// 1.10 "Page".

import type { Operation } from '../http/operation.ts'
import { CSS, JAVASCRIPT, pageOperations } from '../static-page.ts'

const PATH = '/live'

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Live orders - Kontor</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${PATH}/page.css">
<header>
<h1>Live orders</h1>
<p id="state" data-state="off"><span class="dot" aria-hidden="true"></span><span id="said">Signed out</span>
<button id="hurry" type="button" hidden>Try now</button></p>
</header>
<main>
<form id="sign-in" class="card" aria-labelledby="sign-in-title">
<h2 id="sign-in-title">Sign in</h2>
<p>With a client, or with a token. The secret of the first client is in <code>data/bootstrap.json</code>.
Nothing is kept when this page is closed.</p>
<label>Client <input name="client" value="bootstrap" autocomplete="username" spellcheck="false"></label>
<label>Secret <input name="secret" type="password" autocomplete="current-password"></label>
<label>or token <input name="token" type="password" autocomplete="off"></label>
<p id="refusal" class="fault" role="alert"></p>
<button>Sign in</button>
</form>
<form id="query" class="card" aria-label="What to watch" hidden>
<label class="wide">Filter <input name="filter" spellcheck="false" autocomplete="off" maxlength="8000"
 aria-describedby="fault" placeholder="all orders, or: orderTotal &gt; 100 and orderState == 'confirmed'"></label>
<label>Order by <input name="orderBy" spellcheck="false" autocomplete="off" maxlength="500"></label>
<label>Limit <input name="limit" type="number" min="1" max="500" required></label>
<label class="wide">Fields <input name="fields" spellcheck="false" autocomplete="off" maxlength="2000" required></label>
<p><button>Watch</button> <button id="pause" type="button" aria-pressed="false">Pause</button></p>
</form>
<div id="fault" class="fault" role="alert" hidden><p id="fault-text"></p><pre id="fault-place" hidden></pre></div>
<dl id="numbers" hidden>
<div><dt>Shown</dt><dd id="shown">0</dd></div>
<div><dt>Changes a second</dt><dd id="rate">0</dd></div>
<div title="From the change, by the clock of the node that made it, to its frame in this page"><dt>Lag</dt><dd id="lag">-</dd></div>
<div><dt>Since sign-in</dt><dd id="counts">-</dd></div>
</dl>
<p id="news" class="hidden" role="status"></p>
<div id="list" tabindex="0" role="region" aria-label="Orders" hidden>
<table><caption class="hidden">Orders that match, as they change</caption><thead><tr id="heads"></tr></thead><tbody id="rows"></tbody></table>
</div>
<div id="empty" hidden>
<p><strong>No order matches.</strong></p>
<p>Leave the filter empty to see all, or create an order: it appears here by itself.
<code>npm start</code> with a new data directory loads sample orders, and the README's
&ldquo;first ten things&rdquo; create one.</p>
</div>
</main>
<script src="${PATH}/page.js" type="module"></script>
</html>
`

const place = (name: string) => new URL(`page/${name}`, import.meta.url)

export function livePageOperations(): Operation[] {
  return pageOperations({
    path: PATH,
    summary: 'A page that shows orders as they change; it asks for a token',
    html: PAGE,
    // A text that becomes markup is refused by the browser, whatever the page does.
    policy: { 'require-trusted-types-for': "'script'" },
    files: {
      'page.js': { type: JAVASCRIPT, place: place('page.js') },
      'table.js': { type: JAVASCRIPT, place: place('table.js') },
      'connection.mjs': { type: JAVASCRIPT, place: place('connection.mjs') },
      'list.mjs': { type: JAVASCRIPT, place: place('list.mjs') },
      'pace.mjs': { type: JAVASCRIPT, place: place('pace.mjs') },
      'page.css': { type: CSS, place: place('page.css') },
    },
  })
}
