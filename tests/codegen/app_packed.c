/* An application as microTVM's packed interface wanted them: the run function has one name with the other interface's,
 * and takes an array of values with their types. */
#include <stdint.h>

typedef union {
    int64_t v_int64;
    void *v_handle;
} TVMValue;

int tvmgen_branches_run(TVMValue values[], int32_t types[], int32_t count, void *result, int32_t kind, void *resource);

int main(void)
{
    static int8_t data[65536];
    TVMValue values[5];
    int32_t types[5] = {7, 7, 7, 7, 7};
    for (int i = 0; i < 5; ++i) {
        values[i].v_handle = data;
    }
    return tvmgen_branches_run(values, types, 0, 0, 0, 0);
}
