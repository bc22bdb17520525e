/* Custom instructions with the bench as the core. To whoever looks from outside the unit has four registers: left, right,
 * the function, whose write returns when the unit has taken the instruction, and the result of the oldest without one.
 * As in the core, the next instruction may come while the one before it waits for its answer. */
#ifndef UACCEL_RTL_UNIT_H
#define UACCEL_RTL_UNIT_H

#include <deque>

#include "uaccel_rtl_rules.h"

namespace uaccel_rtl {

enum { UNIT_LEFT = 0, UNIT_RIGHT = 4, UNIT_FUNCTION = 8, UNIT_RESULT = 12 };

template <class Ports> class UnitRegisters : public Registers {
  public:
    UnitRegisters(Bench &bench, Ports ports) : bench_(bench), p_(ports), response_(bench, "rsp_valid") {}

    void reset() override
    {
        p_.cmd_valid() = 0;
        p_.rsp_ready() = 0;
        under_way_ = 0;
        answers_.clear();
        response_.reset();
    }

    void sample() override
    {
        response_.sample(p_.rsp_valid(), p_.rsp_ready(), {p_.rsp_payload_outputs_0()});
    }

    void probe() override
    {
        Probe<UnitRegisters>(bench_, *this).look();
    }

    template <class Visit> void inputs(const Visit &visit)
    {
        visit("rsp_ready", 1, p_.rsp_ready());
    }

    template <class Visit> void outputs(const Visit &visit)
    {
        visit("rsp_valid", p_.rsp_valid());
        visit("rsp_payload_outputs_0", p_.rsp_payload_outputs_0());
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
        for (uint32_t i = 0; answers_.empty(); ++i) {
            if (!cycle(false) || !patient(i, "an instruction is never answered")) {
                return false;
            }
        }
        value = answers_.front();
        answers_.pop_front();
        return true;
    }

  private:
    bool ask()
    {
        const uint32_t before = taken_;
        for (uint32_t i = 0; taken_ == before; ++i) {
            const bool offers = p_.cmd_valid() || bench_.disturbance.goes();
            if (!cycle(offers) || !patient(i, "an instruction is never taken")) {
                return false;
            }
        }
        return true;
    }

    /* The answer may come in the cycle in which the unit takes the command, or later. */
    bool cycle(bool offers)
    {
        p_.cmd_valid() = offers;
        p_.rsp_ready() = bench_.disturbance.goes();
        bench_.cycle_begins();
        const bool taken = p_.cmd_valid() && p_.cmd_ready();
        const bool answered = p_.rsp_valid() && p_.rsp_ready();
        const auto answer = static_cast<uint32_t>(p_.rsp_payload_outputs_0());
        bench_.cycle_ends();
        p_.cmd_valid() = offers && !taken;
        taken_ += taken;
        under_way_ += taken;
        if (answered && under_way_ == 0) {
            bench_.violates("an instruction is answered that was not taken");
            return false;
        }
        if (answered) {
            under_way_ -= 1;
            answers_.push_back(answer);
        }
        return true;
    }

    bool patient(uint32_t cycles, const char *what)
    {
        if (cycles < PATIENCE) {
            return true;
        }
        bench_.violates(what);
        return false;
    }

    Bench &bench_;
    Ports p_;
    Channel response_;
    uint32_t taken_ = 0, under_way_ = 0;
    std::deque<uint32_t> answers_;
};

} // namespace uaccel_rtl

#endif
