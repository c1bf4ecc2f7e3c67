// Fused float32 operations for training a small Gated DeltaNet on CPUs: forward and hand-written
// backward. Built by nano_ops.py; called through ctypes with raw pointers. Rows are contiguous.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
using i64 = int64_t;
static inline float sig(float x) { return 1.0f / (1.0f + expf(-x)); }
extern "C" {

// y = x * rsqrt(mean x^2 + eps) * (one + w)
void rms_fwd(const float* x, const float* w, float* y, float* r, i64 rows, i64 d, float one,
             float eps, int nt) {
#pragma omp parallel for num_threads(nt)
  for (i64 i = 0; i < rows; i++) {
    const float* a = x + i * d;
    float* o = y + i * d;
    float s = 0;
    for (i64 j = 0; j < d; j++) s += a[j] * a[j];
    float k = 1.0f / sqrtf(s / d + eps);
    r[i] = k;
    for (i64 j = 0; j < d; j++) o[j] = a[j] * k * (one + w[j]);
  }
}
void rms_bwd(const float* x, const float* w, const float* r, const float* gy, float* gx, float* gw,
             i64 rows, i64 d, float one, int nt) {
  memset(gw, 0, d * 4);
#pragma omp parallel num_threads(nt)
  {
    std::vector<float> acc(d, 0.0f);
#pragma omp for
    for (i64 i = 0; i < rows; i++) {
      const float* a = x + i * d;
      const float* g = gy + i * d;
      float* o = gx + i * d;
      float k = r[i], s = 0;
      for (i64 j = 0; j < d; j++) {
        float t = g[j] * (one + w[j]);
        s += t * a[j];
        acc[j] += g[j] * a[j] * k;
      }
      s *= k * k / d;
      for (i64 j = 0; j < d; j++) o[j] = k * (g[j] * (one + w[j]) - a[j] * s);
    }
#pragma omp critical
    for (i64 j = 0; j < d; j++) gw[j] += acc[j];
  }
}
// y = rms(x) * w * silu(z), heads of d; w shared by heads
void gnorm_fwd(const float* x, const float* z, const float* w, float* y, float* r, i64 rows, i64 d,
               float eps, int nt) {
#pragma omp parallel for num_threads(nt)
  for (i64 i = 0; i < rows; i++) {
    const float* a = x + i * d;
    const float* q = z + i * d;
    float* o = y + i * d;
    float s = 0;
    for (i64 j = 0; j < d; j++) s += a[j] * a[j];
    float k = 1.0f / sqrtf(s / d + eps);
    r[i] = k;
    for (i64 j = 0; j < d; j++) o[j] = a[j] * k * w[j] * q[j] * sig(q[j]);
  }
}
void gnorm_bwd(const float* x, const float* z, const float* w, const float* r, const float* gy,
               float* gx, float* gz, float* gw, i64 rows, i64 d, int nt) {
  memset(gw, 0, d * 4);
#pragma omp parallel num_threads(nt)
  {
    std::vector<float> acc(d, 0.0f), t(d);
#pragma omp for
    for (i64 i = 0; i < rows; i++) {
      const float *a = x + i * d, *q = z + i * d, *g = gy + i * d;
      float *o = gx + i * d, *oz = gz + i * d;
      float k = r[i], s = 0;
      for (i64 j = 0; j < d; j++) {
        float sg = sig(q[j]), si = q[j] * sg;
        acc[j] += g[j] * a[j] * k * si;
        oz[j] = g[j] * a[j] * k * w[j] * (sg + si * (1 - sg));
        t[j] = g[j] * w[j] * si;
        s += t[j] * a[j];
      }
      s *= k * k / d;
      for (i64 j = 0; j < d; j++) o[j] = k * (t[j] - a[j] * s);
    }
#pragma omp critical
    for (i64 j = 0; j < d; j++) gw[j] += acc[j];
  }
}
void swiglu_fwd(const float* g, const float* u, float* y, i64 n, int nt) {
#pragma omp parallel for simd num_threads(nt)
  for (i64 i = 0; i < n; i++) y[i] = g[i] * sig(g[i]) * u[i];
}
void swiglu_bwd(const float* g, const float* u, const float* gy, float* gg, float* gu, i64 n,
                int nt) {
#pragma omp parallel for simd num_threads(nt)
  for (i64 i = 0; i < n; i++) {
    float s = sig(g[i]), si = g[i] * s;
    gu[i] = gy[i] * si;
    gg[i] = gy[i] * u[i] * (s + si * (1 - s));
  }
}
// causal depthwise convolution, kernel 4, then SiLU. x, y: [B, n, C]; w: [C, 4] given transposed as
// [4, C]; p keeps the sum before SiLU
void conv_fwd(const float* x, const float* wt, float* p, float* y, i64 B, i64 n, i64 C, int nt) {
#pragma omp parallel for num_threads(nt)
  for (i64 it = 0; it < B * n; it++) {
    i64 t = it % n;
    const float* a = x + it * C;
    float* o = p + it * C;
    float* q = y + it * C;
    for (i64 c = 0; c < C; c++) o[c] = wt[3 * C + c] * a[c];
    for (int j = 1; j < 4 && j <= t; j++) {
      const float *b = a - j * C, *w = wt + (3 - j) * C;
      for (i64 c = 0; c < C; c++) o[c] += w[c] * b[c];
    }
    for (i64 c = 0; c < C; c++) q[c] = o[c] * sig(o[c]);
  }
}
void conv_bwd(const float* x, const float* wt, const float* p, const float* gy, float* gx,
              float* gwt, i64 B, i64 n, i64 C, int nt) {
  memset(gwt, 0, 4 * C * 4);
#pragma omp parallel num_threads(nt)
  {
    std::vector<float> acc(4 * C, 0.0f), ring(4 * C);
#pragma omp for
    for (i64 b = 0; b < B; b++) {
      std::fill(ring.begin(), ring.end(), 0.0f);
      for (i64 t = n - 1; t >= 0; t--) {
        i64 it = b * n + t;
        const float *pp = p + it * C, *g = gy + it * C, *a = x + it * C;
        float* gp = &ring[(t & 3) * C];
        float* o = gx + it * C;
        for (i64 c = 0; c < C; c++) {
          float s = sig(pp[c]);
          gp[c] = g[c] * (s + pp[c] * s * (1 - s));
        }
        for (int j = 0; j < 4 && j <= t; j++) {
          const float* xa = a - j * C;
          float* ac = &acc[(3 - j) * C];
          for (i64 c = 0; c < C; c++) ac[c] += gp[c] * xa[c];
        }
        for (i64 c = 0; c < C; c++) o[c] = wt[3 * C + c] * gp[c];
        for (int j = 1; j < 4 && t + j < n; j++) {
          const float *gq = &ring[((t + j) & 3) * C], *w = wt + (3 - j) * C;
          for (i64 c = 0; c < C; c++) o[c] += w[c] * gq[c];
        }
      }
    }
#pragma omp critical
    for (i64 c = 0; c < 4 * C; c++) gwt[c] += acc[c];
  }
}
}  // extern C

// Gated delta rule, recurrent, D = key and value head size. c: [B, n, C] with q | k | v; g, beta:
// [B, n, HV]; o: [B, n, HV*D].
constexpr int SEG = 32;
template <int D>
static void step(float* S, const float* q, const float* k, const float* v, float a, float be,
                 float* o, float* dd) {
  float p[D];
  for (int j = 0; j < D; j++) p[j] = 0;
  for (int i = 0; i < D; i++) {
    float ki = k[i];
    float* s = S + i * D;
    for (int j = 0; j < D; j++) {
      s[j] *= a;
      p[j] += ki * s[j];
    }
  }
  for (int j = 0; j < D; j++) dd[j] = be * (v[j] - p[j]);
  float oo[D];
  for (int j = 0; j < D; j++) oo[j] = 0;
  for (int i = 0; i < D; i++) {
    float ki = k[i], qi = q[i];
    float* s = S + i * D;
    for (int j = 0; j < D; j++) {
      s[j] += ki * dd[j];
      oo[j] += qi * s[j];
    }
  }
  for (int j = 0; j < D; j++) o[j] = oo[j];
}
template <int D>
static void unit(const float* x, float* y, float* r, float scale) {
  float s = 0;
  for (int j = 0; j < D; j++) s += x[j] * x[j];
  *r = 1.0f / sqrtf(s + 1e-6f);
  for (int j = 0; j < D; j++) y[j] = x[j] * *r * scale;
}
template <int D>
static void dfwd(const float* c, const float* g, const float* be, float* o, float* ck, i64 B, i64 n,
                 i64 HK, i64 HV, int nt) {
  i64 C = 2 * HK * D + HV * D, R = HV / HK, ns = (n + SEG - 1) / SEG;
  float sc = 1.0f / sqrtf((float)D);
#pragma omp parallel for collapse(2) num_threads(nt) schedule(dynamic)
  for (i64 b = 0; b < B; b++)
    for (i64 h = 0; h < HV; h++) {
      alignas(64) float S[D * D], q[D], k[D], dd[D];
      float r;
      memset(S, 0, sizeof S);
      i64 kh = h / R;
      for (i64 t = 0; t < n; t++) {
        const float* row = c + (b * n + t) * C;
        if (t % SEG == 0) memcpy(ck + ((b * HV + h) * ns + t / SEG) * D * D, S, sizeof S);
        unit<D>(row + kh * D, q, &r, sc);
        unit<D>(row + (HK + kh) * D, k, &r, 1);
        step<D>(S, q, k, row + (2 * HK + h) * D, expf(g[(b * n + t) * HV + h]),
                be[(b * n + t) * HV + h], o + ((b * n + t) * HV + h) * D, dd);
      }
    }
}
template <int D>
static void dbwd(const float* c, const float* g, const float* be, const float* ck, const float* go,
                 float* gc, float* gg, float* gb, i64 B, i64 n, i64 HK, i64 HV, int nt) {
  i64 C = 2 * HK * D + HV * D, R = HV / HK, ns = (n + SEG - 1) / SEG;
  float sc = 1.0f / sqrtf((float)D);
#pragma omp parallel num_threads(nt)
  {
    std::vector<float> buf((SEG + 1) * D * D), Q(SEG * D), K(SEG * D), DD(SEG * D), RQ(SEG),
        RK(SEG), GQ, GK;
#pragma omp for collapse(2) schedule(dynamic)
    for (i64 b = 0; b < B; b++)
      for (i64 kh = 0; kh < HK; kh++) {
        GQ.assign(n * D, 0);
        GK.assign(n * D, 0);
        for (i64 h = kh * R; h < (kh + 1) * R; h++) {
          alignas(64) float dS[D * D];
          memset(dS, 0, sizeof dS);
          float o[D];
          for (i64 sgm = ns - 1; sgm >= 0; sgm--) {
            i64 t0 = sgm * SEG, t1 = t0 + SEG < n ? t0 + SEG : n;
            // buf[u] = state after u tokens of the segment
            memcpy(buf.data(), ck + ((b * HV + h) * ns + sgm) * D * D, D * D * 4);
            for (i64 t = t0; t < t1; t++) {
              i64 u = t - t0;
              const float* row = c + (b * n + t) * C;
              float* S = &buf[(u + 1) * D * D];
              memcpy(S, S - D * D, D * D * 4);
              unit<D>(row + kh * D, &Q[u * D], &RQ[u], sc);
              unit<D>(row + (HK + kh) * D, &K[u * D], &RK[u], 1);
              step<D>(S, &Q[u * D], &K[u * D], row + (2 * HK + h) * D,
                      expf(g[(b * n + t) * HV + h]), be[(b * n + t) * HV + h], o, &DD[u * D]);
            }
            for (i64 t = t1 - 1; t >= t0; t--) {
              i64 u = t - t0, ix = (b * n + t) * HV + h;
              const float *q = &Q[u * D], *k = &K[u * D], *dd = &DD[u * D], *g_o = go + ix * D,
                          *v = c + (b * n + t) * C + (2 * HK + h) * D;
              const float *S1 = &buf[(u + 1) * D * D], *S0 = &buf[u * D * D];
              float a = expf(g[ix]), bt = be[ix];
              float ddd[D], dq[D], dk[D];
              for (int j = 0; j < D; j++) ddd[j] = 0;
              for (int i = 0; i < D; i++) {
                float qi = q[i], ki = k[i], sq = 0, sk = 0;
                float* ds = dS + i * D;
                const float* s1 = S1 + i * D;
                for (int j = 0; j < D; j++) {
                  ds[j] += qi * g_o[j];
                  sq += s1[j] * g_o[j];
                  sk += ds[j] * dd[j];
                  ddd[j] += ki * ds[j];
                }
                dq[i] = sq;
                dk[i] = sk;
              }
              float p[D];
              for (int j = 0; j < D; j++) p[j] = 0;
              for (int i = 0; i < D; i++) {
                float ki = k[i] * a;
                const float* s0 = S0 + i * D;
                for (int j = 0; j < D; j++) p[j] += ki * s0[j];
              }
              float db = 0, dp[D];
              float* gv = gc + (b * n + t) * C + (2 * HK + h) * D;
              for (int j = 0; j < D; j++) {
                db += ddd[j] * (v[j] - p[j]);
                gv[j] = bt * ddd[j];
                dp[j] = -bt * ddd[j];
              }
              gb[ix] = db;
              float da = 0;
              for (int i = 0; i < D; i++) {
                float ki = k[i], sk = 0;
                float* ds = dS + i * D;
                const float* s0 = S0 + i * D;
                for (int j = 0; j < D; j++) {
                  ds[j] += ki * dp[j];
                  sk += s0[j] * dp[j];
                  da += ds[j] * s0[j];
                  ds[j] *= a;
                }
                dk[i] += a * sk;
              }
              gg[ix] = da * a;
              for (int j = 0; j < D; j++) {
                GQ[t * D + j] += dq[j];
                GK[t * D + j] += dk[j];
              }
            }
          }
        }
        for (i64 t = 0; t < n; t++) {
          const float *xq = c + (b * n + t) * C + kh * D, *xk = xq + HK * D;
          float *oq = gc + (b * n + t) * C + kh * D, *ok = oq + HK * D, y[D], r, s = 0;
          unit<D>(xq, y, &r, 1);
          for (int j = 0; j < D; j++) s += y[j] * GQ[t * D + j];
          for (int j = 0; j < D; j++) oq[j] = sc * r * (GQ[t * D + j] - y[j] * s);
          s = 0;
          unit<D>(xk, y, &r, 1);
          for (int j = 0; j < D; j++) s += y[j] * GK[t * D + j];
          for (int j = 0; j < D; j++) ok[j] = r * (GK[t * D + j] - y[j] * s);
        }
      }
  }
}
extern "C" {
void delta_fwd(const float* c, const float* g, const float* be, float* o, float* ck, i64 B, i64 n,
               i64 HK, i64 HV, i64 D, int nt) {
  if (D == 32)
    dfwd<32>(c, g, be, o, ck, B, n, HK, HV, nt);
  else if (D == 16)
    dfwd<16>(c, g, be, o, ck, B, n, HK, HV, nt);
  else
    dfwd<64>(c, g, be, o, ck, B, n, HK, HV, nt);
}
void delta_bwd(const float* c, const float* g, const float* be, const float* ck, const float* go,
               float* gc, float* gg, float* gb, i64 B, i64 n, i64 HK, i64 HV, i64 D, int nt) {
  if (D == 32)
    dbwd<32>(c, g, be, ck, go, gc, gg, gb, B, n, HK, HV, nt);
  else if (D == 16)
    dbwd<16>(c, g, be, ck, go, gc, gg, gb, B, n, HK, HV, nt);
  else
    dbwd<64>(c, g, be, ck, go, gc, gg, gb, B, n, HK, HV, nt);
}
}
