"""Frames of a stack: what of one may be shown, and what is plumbing."""

from __future__ import annotations

import pytest

from traces.names.frames import public_frame, public_os_call, public_span

VENV = "/opt/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("vllm/attention/layer.py(290): forward", "vllm.attention.layer.forward"),
        ("torch/cuda/__init__.py(990): synchronize", "torch.cuda.synchronize"),
        (f"{VENV}/megatron/core/optimizer/optimizer.py(5): step", "megatron.core.optimizer.optimizer.step"),
        ("/home/eve/Megatron-LM/megatron/core/x.py(5): f", "megatron.core.x.f"),
        ("/home/eve/secret_model/train.py(12): step", "train.step"),
        ("secret_model/train.py(12): step", "train.step"),
        ("/home/torch/secret/train.py(12): step", "train.step"),
        ("train.py(184): <module>", "train"),
        ("nn.Module: TransformerBlock_12", "TransformerBlock"),
        ("/x/libtorch_cpu.so: void at::native::copy_impl<float>(at::Tensor const&)", "at::native::copy_impl"),
        ("libnccl.so.2.21.5: ncclLaunchKernel", "ncclLaunchKernel"),
    ],
)
def test_a_frame_is_told_by_its_package_and_function_and_never_by_a_folder(text: str, name: str) -> None:
    frame = public_frame(text)
    assert frame is not None
    assert frame.name == name


@pytest.mark.parametrize(
    "text",
    [
        "torch/nn/modules/module.py(1779): _call_impl",
        f"{VENV}/torch/nn/modules/module.py(1779): _wrapped_call_impl",
        "torch/utils/_contextlib.py(117): decorate_context",
        "torch/_library/custom_ops.py(3): wrapped_fn",
        "contextlib.py(81): inner",
        "threading.py(355): wait",
        "/usr/lib/python3.12/threading.py(355): wait",
        "vllm/model_executor/parameter.py(122): __torch_function__",
        "train.py(3): <listcomp>",
        "<built-in method conv2d of type object at 0x7f4f7dff0640>",
        "<string>(1): <module>",
        "/usr/lib/libpython3.12.so.1.0: _PyEval_EvalFrameDefault",
        "/home/eve/own.so: secret_kernel",
        "/lib64/libc.so.6: __poll",
    ],
)
def test_plumbing_and_what_may_be_private_is_no_address(text: str) -> None:
    assert public_frame(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "/home/eve/run_20261127.py(3): step",  # a date, an account or an address may stand in a number
        "/home/eve/10_0_0_1.py(3): step",
        "/home/eve/my train.py(3): step",
        "train.py(3): hf_" + "a" * 70,
        "train.py(3): step\nof eve",
    ],
)
def test_a_name_that_is_no_plain_identifier_is_withheld(text: str) -> None:
    assert public_frame(text) is None


def test_operators_and_ranges_are_told_and_the_range_of_a_step_is_none() -> None:
    told = {
        "aten::mm, seq = 3": "operator",
        "autograd::engine::evaluate_function: ConvolutionBackward0": "operator",
        "ncclAllReduce": "operator",
        "layer_3f": "range",
        "Optimizer.step#AdamW.step": "range",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": "range",
    }
    kinds = {text: frame and frame.kind.value for text in told if (frame := public_span(text))}
    assert kinds == told
    assert [public_span(text) for text in ("iteration 3", "ProfilerStep#3", "eve's range")] == [None] * 3
    assert public_span("layer_3f") == public_span("layer_4f")


def test_a_call_of_the_operating_system_is_one_that_we_know() -> None:
    found = public_os_call("pthread_cond_wait")
    assert found is not None
    assert found.name == "pthread_cond_wait"
    assert public_os_call("hunter2_sesame") is None
