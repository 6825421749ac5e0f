#include "lib/simd/kernel.h"
#include "lib/plan/problem.h"

#include <stdatomic.h>
#include <string.h>

extern const struct kl_kernel kl_kernel_generic;
#ifdef __x86_64__
extern const struct kl_kernel kl_kernel_avx512, kl_kernel_avx2;
#endif
#ifdef __aarch64__
extern const struct kl_kernel kl_kernel_neon;
#endif

const struct kl_kernel *const kl_kernels[] = {
#ifdef __x86_64__
    &kl_kernel_avx512,  &kl_kernel_avx2,
#endif
#ifdef __aarch64__
    &kl_kernel_neon,
#endif
    &kl_kernel_generic, NULL,
};

static _Atomic(const struct kl_kernel *) chosen;

/* The last one, generic, runs anywhere. */
static const struct kl_kernel *best(void)
{
    const struct kl_kernel *const *k = kl_kernels;
    while (k[1] && !(*k)->supported())
        k++;
    return *k;
}

const struct kl_kernel *kl_kernel(void)
{
    const struct kl_kernel *kernel = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!kernel) {
        kernel = best();
        atomic_store_explicit(&chosen, kernel, memory_order_relaxed);
    }
    return kernel;
}

bool kl_simd_select(const char *name, struct kl_problem *problem)
{
    if (strcmp(name, "auto") == 0) {
        atomic_store(&chosen, best());
        return true;
    }
    for (const struct kl_kernel *const *k = kl_kernels; *k; k++)
        if (strcmp(name, (*k)->name) == 0 && (*k)->supported()) {
            atomic_store(&chosen, *k);
            return true;
        }
    return kl_fail(problem, KL_NO_OPERAND, "simd_invalid",
                   "%.40s is not an instruction set of this CPU", name);
}

const char *kl_simd_name(void) { return kl_kernel()->name; }
