// One GET per iteration: the k6 twin of workflows.Get.
import http from 'k6/http';

const target = __ENV.BENCH_TARGET;

export const options = {
  scenarios: {
    get: { executor: 'constant-vus', vus: Number(__ENV.BENCH_VUS), duration: __ENV.BENCH_DURATION },
  },
  noConnectionReuse: false,
  discardResponseBodies: false,
  thresholds: { http_req_failed: ['rate==0'] },
};

export default function () {
  http.get(`${target}/`);
}
