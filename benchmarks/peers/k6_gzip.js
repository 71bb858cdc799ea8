// One GET of a compressed body per iteration, which k6 decodes: the twin of workflows.GetRead.
import http from 'k6/http';

export { options } from './k6_options.js';

const url = `${__ENV.BENCH_TARGET}${__ENV.BENCH_PATH}`;
const compressed = { headers: { 'Accept-Encoding': 'gzip' } };

export default function () {
  http.get(url, compressed);
}
