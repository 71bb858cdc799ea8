// One GET on a new connection per iteration: the k6 twin of workflows.Fresh.
import http from 'k6/http';

import { options as common } from './k6_options.js';

export const options = Object.assign({}, common, { noConnectionReuse: true });

const url = `${__ENV.BENCH_TARGET}${__ENV.BENCH_PATH}`;

export default function () {
  http.get(url);
}
