#include "api/monitors/model/binomial.h"

#include <math.h>

double api_binomial_tail(double k, double n, double probability)
{
    if (k <= n * probability)
        return 1;
    double odds = probability / (1 - probability), sum = 0;
    double term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(probability) +
                      (n - k) * log1p(-probability));
    for (; k <= n && term > sum * 1e-17; k++) {
        sum += term;
        term *= (n - k) / (k + 1) * odds;
    }
    return fmin(1, sum);
}
