/* The version and the sizes of the library, for callers that have no C compiler. */
#include "lib/drift.h"

const char *kl_version(void) { return KLDIV_VERSION; }

size_t kl_chunk(void) { return KL_CHUNK; }

size_t kl_sizeof(enum kl_struct name)
{
    static const size_t sizes[] = {
        [KL_SIZEOF_PROBLEM] = sizeof(struct kl_problem),
        [KL_SIZEOF_TENSOR] = sizeof(struct kl_tensor),
        [KL_SIZEOF_MASK] = sizeof(struct kl_mask),
        [KL_SIZEOF_OPTIONS] = sizeof(struct kl_options),
        [KL_SIZEOF_PLAN] = sizeof(struct kl_plan),
        [KL_SIZEOF_PARTIAL] = sizeof(struct kl_partial),
        [KL_SIZEOF_RESULTS] = sizeof(struct kl_results),
        [KL_SIZEOF_DIAGNOSIS] = sizeof(struct kl_diagnosis),
        [KL_SIZEOF_DRIFT_OPTIONS] = sizeof(struct kl_drift_options),
        [KL_SIZEOF_DRIFT] = sizeof(struct kl_drift),
        [KL_SIZEOF_DRIFT_BIN] = sizeof(struct kl_drift_bin),
    };
    return (unsigned)name < sizeof sizes / sizeof *sizes ? sizes[name] : 0;
}
