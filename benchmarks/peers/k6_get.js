// One GET per iteration: the k6 twin of workflows.Get.
import http from 'k6/http';

export { options } from './k6_options.js';

const url = `${__ENV.BENCH_TARGET}${__ENV.BENCH_PATH}`;

export default function () {
  http.get(url);
}
