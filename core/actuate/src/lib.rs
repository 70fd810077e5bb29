//! Shares to knob writes: conversion, diff, order, undo.
