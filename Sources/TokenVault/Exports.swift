// TokenVault is the one module that users import. What it consists of is the package's own affair.
@_exported public import TokenVaultCore
@_exported public import TokenVaultDesktop
@_exported public import TokenVaultFile
