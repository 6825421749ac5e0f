/* The memory of the whole process: what malloc keeps, what is resident, what is given back. --max-memory bounds what
 * requests and monitors hold; this is about the rest. */
#pragma once

#include "api/memory/budget.h"

/* Bounds what malloc keeps, in a cgroup that may have `memory` bytes, and beyond which the kernel kills; has a budget
 * measure the process. Returns how many bytes the budget may count beside what the process has now. Called once, before
 * there are threads. */
size_t srv_memory_bound(struct api_budget *budget, size_t memory);

/* Returns memory to the system that nothing uses: blocks that were kept for a while, and free pages between others.
 * Called about once a second, by a thread for which no request waits: malloc's lock may be held for some
 * milliseconds. */
void srv_memory_give_back(struct api_budget *budget);
