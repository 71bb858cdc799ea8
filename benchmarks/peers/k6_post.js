// One POST of 10 KB per iteration: the k6 twin of workflows.Post.
import http from 'k6/http';

export { options } from './k6_options.js';

const url = `${__ENV.BENCH_TARGET}${__ENV.BENCH_PATH}`;
const body = 'x'.repeat(10000);

export default function () {
  http.post(url, body);
}
