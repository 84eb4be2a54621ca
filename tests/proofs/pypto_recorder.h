// A stand-in for simpler's pto_orchestration_api.h: it runs an orchestration, and records what each task is submitted with.
#pragma once

#include <cstdint>
#include <cstdio>

static char opschema_text[1 << 16];
static int opschema_used;
static unsigned opschema_bits;

template <class... T>
static void opschema_record(const char *format, T... values) {
    opschema_used += snprintf(opschema_text + opschema_used, sizeof opschema_text - opschema_used, format, values...);
}

static inline bool opschema_choice(int number) { return opschema_bits >> number & 1; }

struct ChipTensor {
    int index = -1;
    template <class... T> ChipTensor view(const T &...) const { return *this; }
    template <class... T> ChipTensor reshape(const T &...) const { return *this; }
    template <class... T> ChipTensor transpose(const T &...) const { return *this; }
};

struct TensorCreateInfo {
    template <class... T> TensorCreateInfo(const T &...) {}
};

struct TensorRef {
    ChipTensor tensor;
    const ChipTensor &ref() const { return tensor; }
};

struct ChipTaskArgs {
    TensorRef tensors[64];
    ChipTaskArgs() { for (int i = 0; i < 64; i++) tensors[i].tensor.index = i; }
    const TensorRef &tensor(int index) const { return tensors[index]; }
    uint64_t scalar(int) const { return 1; }
};

struct CoreTaskArgs {
    char slots[64][16];
    int count = 0;
    bool scalars = false, refused = false;
    void slot(const char *kind, int index) {
        refused = refused || scalars;
        snprintf(slots[count++], sizeof slots[0], "%s:%d", kind, index);
    }
    void one(const char *kind, const ChipTensor &tensor) { slot(kind, tensor.index); }
    void one(const char *kind, const TensorCreateInfo &) { slot(kind, -1); }
    template <class... T> void add_input(const T &...tensors) { (one("IN", tensors), ...); }
    template <class... T> void add_output(const T &...tensors) { (one("OUT", tensors), ...); }
    template <class... T> void add_inout(const T &...tensors) { (one("INOUT", tensors), ...); }
    template <class... T> void add_no_dep(const T &...tensors) { (one("NO_DEP", tensors), ...); }
    template <class... T> void add_scalar(const T &...) { scalars = true; }
};

struct MixedKernels {
    int aic_kernel_id = -1, aiv0_kernel_id = -1, aiv1_kernel_id = -1;
};

struct TaskOutputTensors {
    ChipTensor made;
    const ChipTensor &get_ref(int) const { return made; }
};

static inline TaskOutputTensors rt_submit_task(const MixedKernels &mixed, const CoreTaskArgs &args) {
    opschema_record("%s", args.refused ? "refused" : "task");
    const int ids[] = {mixed.aic_kernel_id, mixed.aiv0_kernel_id, mixed.aiv1_kernel_id};
    for (int id : ids)
        if (id >= 0) opschema_record(" %d", id);
    opschema_record("%s", " |");
    for (int i = 0; i < args.count; i++) opschema_record(" %s", args.slots[i]);
    opschema_record("%s", "\n");
    return {};
}

static inline TaskOutputTensors rt_submit_aic_task(int id, const CoreTaskArgs &args) {
    MixedKernels mixed;
    mixed.aic_kernel_id = id;
    return rt_submit_task(mixed, args);
}

static inline TaskOutputTensors rt_submit_aiv_task(int id, const CoreTaskArgs &args) {
    MixedKernels mixed;
    mixed.aiv0_kernel_id = id;
    return rt_submit_task(mixed, args);
}

#define PTO2_SCOPE(...) if (true)

extern "C" const void *opschema_args(unsigned bits) {
    static const ChipTaskArgs args;
    opschema_bits = bits;
    opschema_used = 0;
    opschema_text[0] = 0;
    return &args;
}

extern "C" const char *opschema_recorded() { return opschema_text; }
