/* Custom instructions with the bench as the core. To whoever looks from outside the unit has four registers: left, right,
 * the function, whose write has it answer, and the result. */
#ifndef UACCEL_RTL_UNIT_H
#define UACCEL_RTL_UNIT_H

#include "uaccel_rtl.h"

namespace uaccel_rtl {

enum { UNIT_LEFT = 0, UNIT_RIGHT = 4, UNIT_FUNCTION = 8, UNIT_RESULT = 12 };

template <class Ports> class UnitRegisters : public Registers {
  public:
    UnitRegisters(Bench &bench, Ports ports) : bench_(bench), p_(ports) {}

    void reset() override
    {
        p_.cmd_valid() = 0;
        p_.rsp_ready() = 0;
    }

    bool write(uint32_t offset, uint32_t value) override
    {
        if (offset == UNIT_LEFT) {
            p_.cmd_payload_inputs_0() = value;
        } else if (offset == UNIT_RIGHT) {
            p_.cmd_payload_inputs_1() = value;
        } else if (offset == UNIT_FUNCTION) {
            p_.cmd_payload_function_id() = static_cast<decltype(p_.cmd_payload_function_id() + 0)>(value);
            return ask();
        }
        return true;
    }

    bool read(uint32_t, uint32_t &value) override
    {
        value = result_;
        return true;
    }

  private:
    /* The answer may come in the cycle in which the unit takes the command, or later. */
    bool ask()
    {
        p_.cmd_valid() = 1;
        for (uint32_t i = 0; i < PATIENCE; ++i) {
            p_.rsp_ready() = bench_.disturbance.goes();
            bench_.cycle_begins();
            const bool taken = p_.cmd_valid() && p_.cmd_ready();
            const bool answered = p_.rsp_valid() && p_.rsp_ready();
            const bool early = answered && p_.cmd_valid() && !taken;
            result_ = answered ? static_cast<uint32_t>(p_.rsp_payload_outputs_0()) : result_;
            bench_.cycle_ends();
            if (early) {
                bench_.violates("an instruction is answered that was not taken");
                return false;
            }
            p_.cmd_valid() = p_.cmd_valid() && !taken;
            if (answered) {
                reset();
                return true;
            }
        }
        bench_.violates("an instruction is never answered");
        return false;
    }

    Bench &bench_;
    Ports p_;
    uint32_t result_ = 0;
};

} // namespace uaccel_rtl

#endif
